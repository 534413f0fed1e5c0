//! The four things a service needs of its machine, and what each counts for.

use super::{Ppm, rounded};

/// What can be used up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Resource {
    /// Processor time.
    Cpu,
    /// Main memory.
    Memory,
    /// Disk input and output.
    Disk,
    /// Network traffic.
    Network,
}

impl Resource {
    /// All of them, in the order they are always named.
    pub const ALL: [Resource; 4] =
        [Resource::Cpu, Resource::Memory, Resource::Disk, Resource::Network];

    /// As configuration and reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Resource::Cpu => "cpu",
            Resource::Memory => "memory",
            Resource::Disk => "disk",
            Resource::Network => "network",
        }
    }
}

/// One value for each resource.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PerResource<T> {
    /// For the CPU.
    pub cpu: T,
    /// For memory.
    pub memory: T,
    /// For the disk.
    pub disk: T,
    /// For the network.
    pub network: T,
}

impl<T> PerResource<T> {
    /// The value of one resource.
    pub const fn get(&self, resource: Resource) -> &T {
        match resource {
            Resource::Cpu => &self.cpu,
            Resource::Memory => &self.memory,
            Resource::Disk => &self.disk,
            Resource::Network => &self.network,
        }
    }

    /// The value of one resource, to change it.
    pub const fn get_mut(&mut self, resource: Resource) -> &mut T {
        match resource {
            Resource::Cpu => &mut self.cpu,
            Resource::Memory => &mut self.memory,
            Resource::Disk => &mut self.disk,
            Resource::Network => &mut self.network,
        }
    }

    /// Each resource with its value.
    pub fn iter(&self) -> impl Iterator<Item = (Resource, &T)> {
        Resource::ALL.into_iter().map(|resource| (resource, self.get(resource)))
    }
}

impl<T: Copy> PerResource<T> {
    /// Another value made of each.
    pub fn map<U>(&self, mut make: impl FnMut(Resource, T) -> U) -> PerResource<U> {
        PerResource {
            cpu: make(Resource::Cpu, self.cpu),
            memory: make(Resource::Memory, self.memory),
            disk: make(Resource::Disk, self.disk),
            network: make(Resource::Network, self.network),
        }
    }
}

/// What each resource counts for: K or λ of the paper. Only their ratio matters, as every sum is
/// divided by theirs, which is what ΣK = Σλ = 1 says. At least one is not zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Coefficients(PerResource<u32>);

impl Coefficients {
    /// CPU 60, network 20, memory 10, disk 10.
    pub const DEFAULT: Coefficients =
        Coefficients(PerResource { cpu: 60, memory: 10, disk: 10, network: 20 });

    /// The paper's K for "one typical web cluster": 15, 40, 30, 15.
    pub const MA_AND_CHI: Coefficients =
        Coefficients(PerResource { cpu: 15, memory: 40, disk: 30, network: 15 });

    /// None when all are zero.
    pub fn new(each: PerResource<u32>) -> Option<Coefficients> {
        each.iter().any(|(_, coefficient)| *coefficient > 0).then_some(Coefficients(each))
    }

    /// What each counts for.
    pub const fn each(&self) -> &PerResource<u32> {
        &self.0
    }

    /// The mean of what is known, each value as much as its resource counts for; none when nothing
    /// is known that counts.
    pub fn mean(&self, values: &PerResource<Option<Ppm>>) -> Option<Ppm> {
        let (mut sum, mut coefficients) = (0, 0);
        for (resource, value) in values.iter() {
            let Some(value) = value else { continue };
            let coefficient = u64::from(*self.0.get(resource));
            coefficients += coefficient;
            // Four times 2³² · 2²⁰ at most.
            sum += coefficient * u64::from(value.get());
        }
        (coefficients > 0).then(|| Ppm::saturating(rounded(sum, coefficients)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Coefficients, PerResource, Ppm};

    fn ppm(parts: u64) -> Option<Ppm> {
        Some(Ppm::saturating(parts))
    }

    #[test]
    fn what_is_not_known_does_not_count() {
        let coefficients =
            Coefficients::new(PerResource { cpu: 1, memory: 2, disk: 0, network: 5 }).unwrap();
        let mut values =
            PerResource { cpu: ppm(300_000), memory: ppm(600_000), ..Default::default() };
        assert_eq!(coefficients.mean(&values), ppm(500_000));
        values.disk = ppm(1_000_000);
        assert_eq!(coefficients.mean(&values), ppm(500_000), "counts for nothing");
        values.network = ppm(0);
        assert_eq!(coefficients.mean(&values), ppm(187_500));
        let disk = PerResource { disk: ppm(1), ..Default::default() };
        assert_eq!(coefficients.mean(&disk), None);
    }

    #[test]
    fn coefficients_are_a_ratio_up_to_the_largest_numbers() {
        assert_eq!(Coefficients::new(PerResource::default()), None);
        fn all<T: Copy>(each: T) -> PerResource<T> {
            PerResource { cpu: each, memory: each, disk: each, network: each }
        }
        let coefficients = Coefficients::new(all(u32::MAX)).unwrap();
        assert_eq!(coefficients.mean(&all(Some(Ppm::ONE))), Some(Ppm::ONE));
        assert_eq!(coefficients.mean(&all(ppm(123_456))), ppm(123_456));
    }
}
