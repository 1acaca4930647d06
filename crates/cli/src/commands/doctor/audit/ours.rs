//! What checkrein itself brings: the policy that a session beginning here would be sealed with,
//! if anything hands it the agent's stops.

use checkrein_core::policy::{self, Policy};
use checkrein_execpolicy::RuleSet;

use super::{Found, Kind, Tier};
use crate::locate::{CONFIG, Located};

pub(super) fn read(located: &Located, policy: &Policy, found: &mut Found) {
    if located.repo.is_some() {
        found.setup(Kind::Checkrein, CONFIG);
    }
    // A program of the person's own is started by `checkrein run`, which needs no line anywhere.
    let program = [Kind::BareLoop, Kind::CapsOnly, Kind::LangGraph]
        .iter()
        .any(|kind| found.of(kind).next().is_some());
    let run = found.run || (program && located.repo.is_some());
    let applies = found.hooks || run;
    let under = if found.hooks {
        ""
    } else {
        ", under checkrein run"
    };
    let place = if located.repo.is_some() {
        CONFIG
    } else {
        "built-in defaults"
    };
    for spec in &policy.verifiers {
        let name = spec.name.as_str();
        match (policy.is_required_verifier(&spec.name), applies) {
            (true, true) if spec.tier == policy::VerifierTier::Person => {
                found.fill(
                    Tier::Human,
                    format!("a person looks: '{name}'{under}"),
                    place,
                );
            }
            (true, true) => found.fill(Tier::Hard, format!("check '{name}'{under}"), place),
            (true, false) => found.near(
                Tier::Hard,
                format!("check '{name}': no hook hands stops to it"),
                place,
            ),
            (false, _) => found.near(Tier::Hard, format!("'{name}' is advisory"), place),
        }
    }
    if !applies {
        return;
    }
    if found.hooks {
        found.fill(Tier::Soft, "caps on tokens, time, calls, rounds", place);
        let detectors = policy.loops.detectors.len();
        if detectors > 0 {
            found.fill(Tier::Soft, format!("{detectors} loop detectors"), place);
        }
        // Only hooks show us what is about to run.
        if RuleSet::deserialize_rule_set(&policy.rules)
            .is_ok_and(|rules| rules.has_prompting_rule())
        {
            found.fill(Tier::Human, "rules that prompt", place);
        }
    } else {
        found.fill(
            Tier::Soft,
            format!("caps on attempts and time{under}"),
            place,
        );
    }
    if located.repo.is_some() && found.setups.len() == 1 {
        found.fill(Tier::Lazy, "the agent's own end, asked last", place);
    }
}
