pub fn run(_: &std::path::Path, _: &[Sanitizer]) -> Result<(), String> {
    Ok(())
}
pub const ALL: [Sanitizer; 0] = [];
pub struct Sanitizer;
impl Sanitizer {
    pub fn from_name(_: &str) -> Option<Self> {
        None
    }
}
