//! `srt doctor`: what this machine offers, by trying it; what is missing, what that costs, and what mends it.

use super::arguments::{Doctor, Format};
use super::{output, status};
use sandbox_runtime::exec::{Probe, probes};
use std::fmt::Write as _;
use std::io::Write as _;

pub fn doctor(doctor: &Doctor) -> u8 {
    let probes = probes();
    match doctor.format {
        Format::Json => output::print_json(&serde_json::json!(probes)),
        Format::Human => {
            let text = text(&probes, output::stdout_colour());
            // A closed pipe is how readers say that they have enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
        }
    }
    if probes.iter().all(|probe| probe.ok || !probe.required) { 0 } else { status::FINDINGS }
}

fn text(probes: &[Probe], colour: bool) -> String {
    let mut text = String::new();
    let paint = |code: &str, word: &str| if colour { format!("\x1b[{code}m{word}\x1b[0m") } else { word.to_owned() };
    for probe in probes {
        let mark = match (probe.ok, probe.required) {
            (true, _) => paint("32", "ok     "),
            (false, true) => paint("31", "missing"),
            (false, false) => paint("33", "absent "),
        };
        // Writing into a string does not fail.
        let _ = writeln!(text, "{mark}  {}: {}", probe.name, probe.found);
        if !probe.ok {
            let _ = writeln!(text, "         costs: {}", probe.costs);
            let _ = writeln!(text, "         mend:  {}", probe.mend);
        }
    }
    let lacking = probes.iter().filter(|probe| !probe.ok && probe.required).count();
    let verdict = if lacking == 0 {
        "commands can be run in a sandbox on this machine".to_owned()
    } else {
        format!("commands cannot be run in a sandbox on this machine: {} missing", output::count(lacking, "thing"))
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}
