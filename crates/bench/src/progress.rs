//! What a run tells people while it runs.
//!
//! Bars go to standard error and only if it is a terminal; standard output belongs to the result.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parking_lot::Mutex;

/// Is told how far a run is. Called from one thread.
pub trait Observer: Sync {
    /// `bytes` of `wanted` are taken from the system.
    fn taking_memory(&self, bytes: u64, wanted: u64);

    /// `rows` of about `expected` are loaded.
    fn loading(&self, rows: u64, expected: u64);

    /// A phase has run for `elapsed` of `total`, lately at `transactions_per_second`.
    fn running(&self, phase: &str, elapsed: Duration, total: Duration, transactions_per_second: f64);

    /// `checked` of `conditions` consistency conditions are checked.
    fn checking(&self, checked: usize, conditions: usize);

    /// What was being told is over.
    fn finished(&self);
}

/// Says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn taking_memory(&self, _: u64, _: u64) {}
    fn loading(&self, _: u64, _: u64) {}
    fn running(&self, _: &str, _: Duration, _: Duration, _: f64) {}
    fn checking(&self, _: usize, _: usize) {}
    fn finished(&self) {}
}

/// One bar at a time, removed when its part is over.
#[derive(Debug, Default)]
pub struct Bars {
    bar: Mutex<Option<ProgressBar>>,
}

impl Bars {
    /// Moves the bar to `position`, after making it if there is none. Never counts more than `length`.
    fn show(&self, template: &str, position: u64, length: u64, prefix: &str, message: String) {
        let mut shown = self.bar.lock();
        let bar = shown.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(template).expect("templates here are right");
            ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr())
                .with_style(style)
                .with_prefix(prefix.to_owned())
        });
        bar.set_prefix(prefix.to_owned());
        bar.set_message(message);
        bar.set_position(position.min(length));
    }
}

impl Observer for Bars {
    fn taking_memory(&self, bytes: u64, wanted: u64) {
        let template = "{prefix:>20} [{bar:30}] {bytes} of {total_bytes}, {eta} left";
        self.show(template, bytes, wanted, "taking memory", String::new());
    }

    fn loading(&self, rows: u64, expected: u64) {
        let template = "{prefix:>20} [{bar:30}] {percent:>3} % of {human_len} rows, {eta} left";
        self.show(template, rows, expected, "loading", String::new());
    }

    fn running(&self, phase: &str, elapsed: Duration, total: Duration, transactions_per_second: f64) {
        let template = "{prefix:>20} [{bar:30}] {msg}";
        let seconds = format!("{:.0} of {:.0} s", elapsed.as_secs_f64(), total.as_secs_f64());
        let rate = crate::report::thousands(transactions_per_second as u64);
        let (position, length) = (elapsed.as_millis() as u64, total.as_millis() as u64);
        self.show(template, position, length, phase, format!("{seconds}, {rate} transactions/s"));
    }

    fn checking(&self, checked: usize, conditions: usize) {
        let template = "{prefix:>20} [{bar:30}] {pos} of {len} conditions";
        self.show(template, checked as u64, conditions as u64, "checking", String::new());
    }

    fn finished(&self) {
        if let Some(bar) = self.bar.lock().take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_without_a_terminal_stay_hidden_and_count() {
        let bars = Bars::default();
        bars.loading(5, 3);
        assert_eq!(bars.bar.lock().as_ref().map(ProgressBar::position), Some(3));
        bars.finished();
        bars.running("transactions", Duration::from_secs(1), Duration::from_secs(2), 1e6);
        bars.finished();
        bars.checking(1, 12);
        bars.finished();
        bars.taking_memory(1 << 20, 1 << 30);
        bars.finished();
        assert!(bars.bar.lock().is_none());
    }
}
