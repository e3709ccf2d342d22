//! Interrupts of devices, by core.

/// How many interrupts of devices each core has handled since the machine was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupts {
    /// Cores by number, each with its interrupts.
    by_core: Vec<(usize, u64)>,
}

impl Interrupts {
    /// The counts of now; `None` where the system does not say. Takes about 50 us, and more with many cores.
    pub fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/interrupts").ok()?)
    }

    /// Reads Linux' `/proc/interrupts`: a line of the cores' names, then a line for each interrupt. Those of
    /// devices have numbers; what cores send each other, and their timers, have names.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let core = |name: &str| Some((name.strip_prefix("CPU")?.parse().ok()?, 0));
        let mut by_core: Vec<(usize, u64)> =
            lines.next()?.split_whitespace().map(core).collect::<Option<_>>()?;
        for line in lines {
            let Some((name, counts)) = line.split_once(':') else { continue };
            if name.trim().bytes().all(|byte| byte.is_ascii_digit()) {
                let counts = counts.split_whitespace().map_while(|count| count.parse::<u64>().ok());
                by_core.iter_mut().zip(counts).for_each(|((_, sum), count)| *sum += count);
            }
        }
        Some(Self { by_core })
    }

    /// The core that has handled more than three quarters of the interrupts since `before`, and how many.
    pub fn busiest_since(&self, before: &Self) -> Option<(usize, u64)> {
        let old =
            |core| before.by_core.iter().find(|(other, _)| *other == core).map_or(0, |(_, count)| *count);
        let grown = || self.by_core.iter().map(|&(core, count)| (core, count.saturating_sub(old(core))));
        let total: u64 = grown().map(|(_, count)| count).sum();
        grown().find(|(_, count)| *count > total / 4 * 3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU2
 28:          0          5 PCI-MSIX-0000:00:01.0   0-edge      virtio0-config
 36:          7    4071631 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:     776473     805962   Local timer interrupts
ERR:          3
";

    #[test]
    fn interrupts_of_devices_are_counted_by_core() {
        let counts = Interrupts::parse(TEXT).unwrap();
        assert_eq!(counts.by_core, [(0, 7), (2, 4_071_636)]);
        for other in ["", "36: 1 2", "CPUx\n 1: 5"] {
            assert_eq!(Interrupts::parse(other), None, "{other}");
        }
    }

    #[test]
    fn core_is_busiest_with_more_than_three_quarters_of_what_is_new() {
        let counts = |by_core: &[(usize, u64)]| Interrupts { by_core: by_core.to_vec() };
        let before = counts(&[(0, 1000), (2, 10)]);
        assert_eq!(counts(&[(0, 1010), (2, 110)]).busiest_since(&before), Some((2, 100)));
        assert_eq!(counts(&[(0, 1050), (2, 110)]).busiest_since(&before), None);
        assert_eq!(counts(&[(0, 1000), (2, 10), (5, 90)]).busiest_since(&before), Some((5, 90)));
        assert_eq!(before.busiest_since(&before), None);
    }

    #[test]
    fn counts_of_this_machine_never_fall() {
        let Some(before) = Interrupts::now() else { return eprintln!("SKIPPED: no /proc/interrupts") };
        let after = Interrupts::now().unwrap();
        assert!(before.by_core.iter().zip(&after.by_core).all(|(old, new)| old.0 == new.0 && old.1 <= new.1));
    }
}
