//! Things kept to be used again: as many as were needed lately, and no more than a limit.
//!
//! Last used first, so that a busy worker stays in its cache. What nobody has needed between two sweeps
//! goes, by halves: after a burst its memory comes back within seconds.

/// Kept things.
#[derive(Debug)]
pub struct Spares<T> {
    kept: Vec<T>,
    /// Keeps no more than this.
    most: usize,
    /// The fewest there have been since the last sweep: those nobody has needed.
    fewest: usize,
}

impl<T> Spares<T> {
    /// Nothing kept yet, and never more than `most`.
    pub const fn new(most: usize) -> Spares<T> {
        Spares { kept: Vec::new(), most, fewest: 0 }
    }

    /// One of them, if there is one.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        let taken = self.kept.pop();
        self.fewest = self.fewest.min(self.kept.len());
        taken
    }

    /// Keeps it for the next who needs one. Gives it back when there are enough.
    #[inline]
    pub fn put(&mut self, spare: T) -> Option<T> {
        if self.kept.len() >= self.most {
            return Some(spare);
        }
        self.kept.push(spare);
        None
    }

    /// Lets half of those go that nobody has needed since the last time. To be called once in a while.
    pub fn sweep(&mut self) {
        let unneeded = self.fewest.div_ceil(2);
        self.kept.drain(..unneeded);
        if self.kept.len() * 4 < self.kept.capacity() {
            self.kept.shrink_to(self.kept.len() * 2);
        }
        self.fewest = self.kept.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count<T>(spares: &Spares<T>) -> usize {
        spares.kept.len()
    }

    #[test]
    fn what_is_needed_stays_and_the_rest_goes_by_halves() {
        let mut spares = Spares::new(100);
        assert_eq!((0..120).filter_map(|number| spares.put(number)).count(), 20);
        // The first sweep only begins to look.
        spares.sweep();
        assert_eq!(count(&spares), 100);
        for left in [90, 85, 82] {
            // Eighty are in use at once.
            let taken: Vec<i32> = (0..80).filter_map(|_| spares.take()).collect();
            assert_eq!(taken.len(), 80);
            taken.into_iter().for_each(|number| assert_eq!(spares.put(number), None));
            spares.sweep();
            assert_eq!(count(&spares), left);
        }
        (0..8).for_each(|_| spares.sweep());
        assert_eq!((count(&spares), spares.take()), (0, None));
        assert!(spares.kept.capacity() < 16);
    }
}
