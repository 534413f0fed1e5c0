//! Processor time, as `/proc/stat` counts it.
//!
//! The first line is the sum over all processors, in ticks: user, nice, system, idle, iowait, irq,
//! softirq, steal, and two more that are part of the first two. Idle is idle + iowait: a processor
//! that waits for a disk is free. Stolen time is busy, because it is not there to be had.
//! Source: proc_stat(5).

/// Ticks since the machine started, and the processors that run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CpuTimes {
    pub(super) busy_ticks: u64,
    pub(super) idle_ticks: u64,
    pub(super) processors: u64,
}

/// Reads `/proc/stat`.
pub(super) fn parse_stat(text: &str) -> Option<CpuTimes> {
    let mut lines = text.lines();
    let mut words = lines.next()?.split_ascii_whitespace();
    if words.next()? != "cpu" {
        return None;
    }
    let ticks: Vec<u64> = words.take(8).map(str::parse).collect::<Result<_, _>>().ok()?;
    let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else { return None };
    let (iowait, others) = rest.split_first().unwrap_or((&0, &[]));
    let busy = [user, nice, system].into_iter().chain(others);
    let busy_ticks = busy.copied().try_fold(0, u64::checked_add)?;
    let is_processor = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let processors = lines.filter(is_processor).count() as u64;
    let times = CpuTimes { busy_ticks, idle_ticks: idle.checked_add(*iowait)?, processors };
    (processors > 0).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::{CpuTimes, parse_stat};

    const RECORDED: &str = "\
cpu  56111 30 39088 72518 1315 7 19041 159 11 3
cpu0 31390 10 17661 35433 215 4 9420 64 11 3
cpu1 24721 20 21426 37085 1099 3 9621 95 0 0
intr 3032798 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
ctxt 7543598
btime 1763732486
processes 59654
procs_running 1
procs_blocked 0
softirq 1403322 0 90453 1 12653 8 0 2 1268021 0 32184
";

    #[test]
    fn busy_is_all_but_idle_and_iowait_and_guests_are_not_counted_twice() {
        let busy_ticks = 56111 + 30 + 39088 + 7 + 19041 + 159;
        let expected = CpuTimes { busy_ticks, idle_ticks: 72518 + 1315, processors: 2 };
        assert_eq!(parse_stat(RECORDED), Some(expected));
        let old = "cpu 1 2 3 4\ncpu0 1 2 3 4\n";
        let expected = CpuTimes { busy_ticks: 6, idle_ticks: 4, processors: 1 };
        assert_eq!(parse_stat(old), Some(expected));
    }

    #[test]
    fn what_is_not_understood_is_not_known() {
        let most = u64::MAX;
        for text in [
            "",
            "cpu",
            "cpu 1 2 3\ncpu0 1 2 3\n",
            "cpu 1 2 3 x\ncpu0\n",
            "cpu 1 2 3 -4\ncpu0\n",
            "cpu0 1 2 3 4 5 6 7 8\n",
            "intr 7\ncpu 1 2 3 4\ncpu0\n",
            "cpu 1 2 3 4 5 6 7 8\n",
            "cpu 1 2 3 4\ncpufreq 1\n",
            &format!("cpu {most} 1 1 1\ncpu0\n"),
            &format!("cpu 1 1 1 {most} 1\ncpu0\n"),
            "cpu 99999999999999999999 1 1 1\ncpu0\n",
        ] {
            assert_eq!(parse_stat(text), None, "{text}");
        }
    }
}
