//! Options that say how much memory a database may use, and sizes as people write them.

use albireo::Config;
use clap::Args;

/// How much memory a database may use. What is not said is a share of what there is.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct MemoryArgs {
    /// Memory of the whole database, from which the other limits are derived: 8GB, 512MB, or 50% of what this process
    /// may use; by default all of that
    #[arg(long, env = "ALBIREO_MEMORY", value_name = "SIZE", help_heading = "Memory")]
    pub memory: Option<Size>,
    /// Memory for tables, indexes and snapshots; by default 5/8 of --memory
    #[arg(long, env = "ALBIREO_DATA_LIMIT", value_name = "SIZE", help_heading = "Memory")]
    pub data_limit: Option<Size>,
    /// Memory for all running queries together, of which one may use half; by default 1/4 of --memory
    #[arg(long, env = "ALBIREO_QUERY_MEMORY", value_name = "SIZE", help_heading = "Memory")]
    pub query_memory: Option<Size>,
}

impl MemoryArgs {
    /// Settings with these limits.
    pub fn config(&self) -> Config {
        self.config_in(albireo_env::memory_bytes())
    }

    /// As [`MemoryArgs::config`], where this process may use `machine_bytes`.
    fn config_in(&self, machine_bytes: Option<u64>) -> Config {
        let bytes = |size: Size| size.bytes(machine_bytes);
        let all_bytes = self.memory.map(bytes).or(machine_bytes);
        let mut config = all_bytes.map_or_else(Config::default, Config::for_memory);
        if let Some(limit) = self.data_limit {
            config.data_limit_bytes = bytes(limit);
            config.snapshot_budget_bytes = config.snapshot_budget_bytes.min(config.data_limit_bytes / 5 * 2);
        }
        if let Some(limit) = self.query_memory {
            config.query_memory_bytes = usize::try_from(bytes(limit)).unwrap_or(usize::MAX);
            config.query_limit_bytes = config.query_memory_bytes / 2;
        }
        config
    }
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So many hundredths, 1 to 100, of what this process may use.
    Percent(u8),
}

impl Size {
    fn bytes(self, machine_bytes: Option<u64>) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(part) => machine_bytes.unwrap_or(0) / 100 * u64::from(part),
        }
    }
}

impl std::str::FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "not a size such as 512MB, 8GB, 1.5TB or 50%".to_owned();
        let text = text.trim();
        if let Some(part) = text.strip_suffix('%') {
            let part = part.trim_end().parse().ok().filter(|part| (1..=100).contains(part));
            return part.map(Self::Percent).ok_or_else(wrong);
        }
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        // As in PostgreSQL, units are powers of 1024.
        let unit: u64 = match text[number.len()..].to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kb" | "kib" => 1 << 10,
            "m" | "mb" | "mib" => 1 << 20,
            "g" | "gb" | "gib" => 1 << 30,
            "t" | "tb" | "tib" => 1 << 40,
            _ => return Err(wrong()),
        };
        let number = number.trim_end();
        let bytes = match number.parse::<u64>() {
            Ok(number) => number.checked_mul(unit),
            // Digits and a point, and nothing else that floating-point numbers are written with.
            Err(_) if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {
                number.parse::<f64>().ok().map(|number| (number * unit as f64) as u64)
            }
            Err(_) => None,
        };
        bytes.filter(|bytes| *bytes > 0).map(Self::Bytes).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024_or_are_hundredths() {
        let size = |text: &str| text.parse::<Size>().ok();
        for (text, bytes) in
            [("4096", 4096), ("512MB", 512 << 20), ("8 gb", 8 << 30), ("1.5G", 3 << 29), ("1TiB", 1 << 40)]
        {
            assert_eq!(size(text), Some(Size::Bytes(bytes)), "{text}");
        }
        assert_eq!(size("50%"), Some(Size::Percent(50)));
        for wrong in ["", "0", "GB", "1XB", "-1GB", "0%", "101%", "1e9", "NaN", "99999999999TB", "1,5GB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn limits_that_are_given_stand_and_others_are_shares() {
        let given = |memory: &str, data: &str, query: &str| {
            let size = |text: &str| text.parse().ok();
            let args = MemoryArgs { memory: size(memory), data_limit: size(data), query_memory: size(query) };
            let config = args.config_in(Some(16 << 30));
            (config.data_limit_bytes, config.query_memory_bytes, config.query_limit_bytes)
        };
        assert_eq!(given("", "", ""), (10 << 30, 4 << 30, 2 << 30));
        assert_eq!(given("8GB", "", ""), (5 << 30, 2 << 30, 1 << 30));
        assert_eq!(given("", "1GB", "512MB"), (1 << 30, 512 << 20, 256 << 20));
        assert_eq!(given("8GB", "50%", "").0, (16 << 30) / 100 * 50);
    }
}
