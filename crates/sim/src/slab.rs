//! Values at numbers that are used again: no allocation for each.

/// Values by number.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// A place for a value, which may hold what was there before.
    #[inline]
    pub(crate) fn claim(&mut self, fresh: impl FnOnce() -> T) -> u32 {
        match self.free.pop() {
            Some(place) => place,
            None => {
                self.places.push(fresh());
                self.places.len() as u32 - 1
            }
        }
    }

    #[inline]
    pub(crate) fn put(&mut self, value: T) -> u32
    where
        T: Copy,
    {
        let place = self.claim(|| value);
        self.places[place as usize] = value;
        place
    }

    /// The place is free for another.
    #[inline]
    pub(crate) fn release(&mut self, place: u32) {
        self.free.push(place);
    }

    /// How many places are in use.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// All there have been, used or not.
    pub(crate) fn places(&self) -> &[T] {
        &self.places
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> &T {
        &self.places[place as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> &mut T {
        &mut self.places[place as usize]
    }
}
