//! What `srt doctor` says of one thing that a machine offers or lacks.

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Probe {
    pub name: &'static str,
    pub ok: bool,
    /// Whether nothing runs without it, whatever the policy.
    pub required: bool,
    /// What was there, or what went wrong.
    pub found: String,
    /// What its lack costs; empty where it is there.
    pub costs: String,
    /// The command or the setting that mends it; empty where it is there.
    pub mend: String,
}

impl Probe {
    pub(super) fn new(
        name: &'static str,
        required: bool,
        result: Result<String, String>,
        costs: &str,
        mend: &str,
    ) -> Probe {
        let ok = result.is_ok();
        let found = result.unwrap_or_else(|found| found);
        let lacking = |text: &str| if ok { String::new() } else { text.to_owned() };
        Probe { name, ok, required, found, costs: lacking(costs), mend: lacking(mend) }
    }
}
