//! A set of small indices: which endpoints are eligible, which were tried.

/// Endpoints that fit without the heap. Pools above this size allocate when a set is *built*, never
/// when one is read; an empty set never allocates.
const INLINE_WORDS: usize = 2;

/// A set of indices `0..len`; absent beyond.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitSet {
    words: Words,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Words {
    Inline([u64; INLINE_WORDS]),
    Heap(Box<[u64]>),
}

impl BitSet {
    /// The set without members. Does not allocate, whatever is asked of it until the first
    /// insertion beyond 127.
    pub const EMPTY: BitSet = BitSet { words: Words::Inline([0; INLINE_WORDS]) };

    /// The set of all indices below `len`.
    pub fn full(len: usize) -> BitSet {
        let mut set = BitSet::with_capacity(len);
        let words = set.words_mut();
        for (position, word) in words.iter_mut().enumerate() {
            let first = position * 64;
            *word = match len.saturating_sub(first) {
                0 => 0,
                left if left >= 64 => u64::MAX,
                left => (1 << left) - 1,
            };
        }
        set
    }

    /// The empty set with room for indices below `len`.
    pub fn with_capacity(len: usize) -> BitSet {
        let words = len.div_ceil(64);
        if words <= INLINE_WORDS {
            return BitSet::EMPTY;
        }
        BitSet { words: Words::Heap(vec![0; words].into_boxed_slice()) }
    }

    /// Whether `index` is a member.
    #[inline]
    pub fn contains(&self, index: usize) -> bool {
        self.as_words().get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Makes `index` a member; grows the set where needed.
    pub fn insert(&mut self, index: usize) {
        let word = index / 64;
        if word >= self.as_words().len() {
            let mut grown = vec![0; (word + 1).next_power_of_two()];
            grown[..self.as_words().len()].copy_from_slice(self.as_words());
            self.words = Words::Heap(grown.into_boxed_slice());
        }
        self.words_mut()[word] |= 1 << (index % 64);
    }

    /// Takes `index` out.
    pub fn remove(&mut self, index: usize) {
        if let Some(word) = self.words_mut().get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    /// How many members there are.
    pub fn count(&self) -> usize {
        self.as_words().iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.as_words().iter().all(|word| *word == 0)
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.without(&BitSet::EMPTY)
    }

    /// The members that are not in `other`, in ascending order.
    pub fn without<'a>(&'a self, other: &'a BitSet) -> impl Iterator<Item = usize> + 'a {
        let others = other.as_words();
        let words = self.as_words().iter().enumerate();
        words.flat_map(move |(position, word)| {
            let mut rest = word & !others.get(position).copied().unwrap_or(0);
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(position * 64 + bit)
            })
        })
    }

    #[inline]
    fn as_words(&self) -> &[u64] {
        match &self.words {
            Words::Inline(words) => words,
            Words::Heap(words) => words,
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match &mut self.words {
            Words::Inline(words) => words,
            Words::Heap(words) => words,
        }
    }
}

impl FromIterator<usize> for BitSet {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> BitSet {
        let mut set = BitSet::EMPTY;
        indices.into_iter().for_each(|index| set.insert(index));
        set
    }
}

#[cfg(test)]
mod tests {
    use super::BitSet;

    #[test]
    fn members_survive_growth_and_removal() {
        let mut set = BitSet::EMPTY;
        for index in [0, 63, 64, 127, 128, 1000, 9999] {
            set.insert(index);
        }
        set.remove(64);
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 127, 128, 1000, 9999]);
        assert_eq!(set.count(), 6);
        assert!(set.contains(9999) && !set.contains(64) && !set.contains(1_000_000));
    }

    #[test]
    fn without_is_the_difference_of_sets_of_any_two_lengths() {
        let many: BitSet = [0, 5, 63, 64, 200, 4000].into_iter().collect();
        let few: BitSet = [5, 64].into_iter().collect();
        assert_eq!(many.without(&few).collect::<Vec<_>>(), [0, 63, 200, 4000]);
        assert_eq!(few.without(&many).next(), None);
        assert_eq!(few.without(&BitSet::EMPTY).collect::<Vec<_>>(), [5, 64]);
    }

    #[test]
    fn full_holds_exactly_its_length() {
        for len in [0, 1, 63, 64, 65, 128, 129, 1000] {
            let set = BitSet::full(len);
            assert_eq!(set.count(), len);
            assert!(!set.contains(len));
        }
    }
}
