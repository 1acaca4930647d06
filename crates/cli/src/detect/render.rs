//! Renders a new `checkrein.toml`: short, with the reason for each check in it.

use super::DetectedCheck;

/// A check, and the result of trying it.
#[derive(Debug, Clone)]
pub(crate) struct PlannedInitCheck {
    pub(crate) check: DetectedCheck,
    /// Why it is not required yet.
    pub(crate) advisory: Option<String>,
}

const HEAD: &str = "\
# What \"done\" means in this repo. Written by `checkrein init`, and yours to edit.
# `checkrein check` runs it now; all keys and their defaults are in docs/configuration.md of Checkrein.
";

const POLICY: &str = "
# Which commands may run (docs/policy.md of Checkrein). A person is asked before a command that
# others feel for good (a release, a forced push, a deployment) or that runs code from the network
# which nobody has read; one that destroys a home, a disk or the system is refused. `rules = []`
# switches both off.
[policy]
rules = [\"builtin:default\"]
";

const NO_CHECKS_NOTE: &str = "
# No check was found here that Checkrein knows, so every \"done\" ends `unverified`. For example:
#
# [[verifier]]
# name = \"tests\"
# run = \"./run-tests.sh\"
";

/// Returns the text of the file.
pub(crate) fn render_starter_config(planned: &[PlannedInitCheck]) -> String {
    let mut text = HEAD.to_owned();
    if planned.is_empty() {
        text.push_str(POLICY);
        text.push_str(NO_CHECKS_NOTE);
        return text;
    }
    if planned.iter().all(|one| one.advisory.is_some()) {
        text.push_str(
            "#\n# Nothing is required yet: each check below says why. Until one is, a \"done\" ends `unverified`.\n",
        );
    }
    text.push_str(POLICY);
    for PlannedInitCheck { check, advisory } in planned {
        text.push_str(&format!(
            // A file's name may hold a line break, which would end the comment and become config.
            "\n# found by: {}\n[[verifier]]\n",
            control_chars_to_spaces(&check.why)
        ));
        text.push_str(&format!("name = {}\n", toml_string(&check.name)));
        text.push_str(&format!("run = {}\n", toml_string(&check.run)));
        if !check.inputs.is_empty() {
            let inputs: Vec<String> = check.inputs.iter().map(|glob| toml_string(glob)).collect();
            text.push_str(&format!("inputs = [{}]\n", inputs.join(", ")));
        }
        if let Some(timeout) = check.timeout {
            text.push_str(&format!("timeout = {}\n", toml_string(timeout)));
        }
        if let Some(why) = advisory {
            text.push_str(&format!(
                "# not required, because {}; once it passes, take the next line out\nadvisory = true\n",
                control_chars_to_spaces(why)
            ));
        }
    }
    text
}

fn control_chars_to_spaces(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().map(plain).collect()
}

/// Returns a text as a TOML string.
fn toml_string(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}
