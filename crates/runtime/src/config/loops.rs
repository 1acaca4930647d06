//! `[loops]`: which detectors are asked, from which counts on they speak, and what follows.

use std::collections::BTreeMap;
use std::path::Path;

use checkrein_core::detectors::{self, LoopThresholds};
use checkrein_core::ids::DetectorName;
use checkrein_core::policy::{DetectorThresholds, LoopEscalationMode, LoopPolicy, PinnedLoopRules};
use checkrein_core::state::CALL_WINDOW_LEN;
use serde::Deserialize;

use super::ConfigError;
use super::config_document::{self, ParsedConfigDocument};

/// The detectors that `loops.warning` and `loops.critical` are about, as in the seed document.
const REPEAT_DETECTORS: &[&str] = &["generic_repeat", "known_poll_no_progress", "ping_pong"];

/// Detectors that count laps: their thresholds do not have to fit into the history.
const LAP_DETECTORS: &[&str] = &["cycle"];

const BREAKER: &str = "global_circuit_breaker";

/// The preset where none is named.
const DEFAULT_DETECTORS: &[&str] = &["generic_repeat", BREAKER];

/// `[loops]`. The table of keys has checked which names there can be.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct LoopDetectorConfigTable {
    pub(super) preset: String,
    detectors: Option<Vec<String>>,
    history: Option<u64>,
    warning: Option<u64>,
    critical: Option<u64>,
    breaker: Option<u64>,
    breaker_counts: Option<BreakerCountedCalls>,
    /// `[loops.NAME]`
    #[serde(flatten)]
    of_detectors: BTreeMap<String, LoopDetectorThresholds>,
}

impl LoopDetectorConfigTable {
    /// Returns a key of the table other than `preset`, if there is one.
    fn first_key_beside_preset(&self) -> Option<String> {
        let of_all = [
            ("detectors", self.detectors.is_some()),
            ("history", self.history.is_some()),
            ("warning", self.warning.is_some()),
            ("critical", self.critical.is_some()),
            ("breaker", self.breaker.is_some()),
            ("breaker_counts", self.breaker_counts.is_some()),
        ];
        let set = of_all.into_iter().find(|(_, is_set)| *is_set);
        let name = set.map(|(name, _)| name.to_owned());
        let name = name.or_else(|| self.of_detectors.keys().next().cloned())?;
        Some(format!("loops.{name}"))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BreakerCountedCalls {
    NoProgress,
    All,
}

/// `[loops.NAME]`
#[derive(Debug, Clone, Copy, Deserialize)]
struct LoopDetectorThresholds {
    warning: Option<u64>,
    critical: Option<u64>,
}

/// Returns the detectors of a preset that is named outside of a config.
///
/// # Errors
/// If there is no such preset, or this build does not have it.
pub fn loop_policy_of_named_preset(name: &Path, preset: &str) -> Result<LoopPolicy, ConfigError> {
    match config_document::describe_bad_config_value("loops.preset", preset) {
        None => Ok(loop_policy_of_preset(preset)),
        Some(what) => Err(ConfigError::Value {
            name: name.to_owned(),
            key: "loops.preset".to_owned(),
            what,
        }),
    }
}

/// The detectors of a preset that the table of keys has checked.
pub(super) fn loop_policy_of_preset(preset: &str) -> LoopPolicy {
    let named = |names: &[&str]| names.iter().map(|name| DetectorName::new(*name)).collect();
    match preset {
        "seed" => LoopPolicy {
            detectors: named(detectors::SEED),
            literal_breaker: true,
            ..LoopPolicy::default()
        },
        "balanced" => LoopPolicy {
            detectors: named(detectors::BALANCED),
            ladder: LoopEscalationMode::PerPattern,
            // The others speak from their own counts on.
            thresholds: vec![DetectorThresholds {
                detector: DetectorName::new("generic_repeat"),
                warning: Some(2),
                critical: Some(3),
            }],
            ..LoopPolicy::default()
        },
        "openclaw" => LoopPolicy {
            pinned: Some(PinnedLoopRules::OpenClaw),
            ..LoopPolicy::default()
        },
        "off" => LoopPolicy::default(),
        // `default`. The table of keys lets no other word through.
        _ => LoopPolicy {
            detectors: named(DEFAULT_DETECTORS),
            ..LoopPolicy::default()
        },
    }
}

/// Returns the loop policy of a config: its preset, with everything else that the table sets laid
/// over it.
pub(super) fn loop_policy_from_config(
    at: &ParsedConfigDocument,
    table: &LoopDetectorConfigTable,
) -> Result<LoopPolicy, ConfigError> {
    let mut policy = loop_policy_of_preset(&table.preset);
    if policy.pinned.is_some()
        && let Some(key) = table.first_key_beside_preset()
    {
        let what = format!(
            "goes with our own detectors; the preset \"{}\" is another agent's rules as they are: leave one of the two out",
            table.preset
        );
        return Err(at.config_value_mistake(&key, what));
    }
    if let Some(names) = &table.detectors {
        // In the order of `ALL`, so that two orders of the same names are one policy.
        policy.detectors = detectors::ALL
            .iter()
            .map(|detector| detector.detector_name())
            .filter(|name| names.iter().any(|wanted| wanted == name))
            .map(DetectorName::new)
            .collect();
    }
    if let Some(history) = table.history {
        if history > CALL_WINDOW_LEN as u64 {
            let what = format!("is {history}; detectors look back at most {CALL_WINDOW_LEN} calls");
            return Err(at.config_value_mistake("loops.history", what));
        }
        policy.history = Some(super::saturate_u32(history));
    }
    if let Some(counts) = table.breaker_counts {
        policy.literal_breaker = counts == BreakerCountedCalls::All;
        if policy.literal_breaker && policy.ladder == LoopEscalationMode::PerPattern {
            let what = format!(
                "\"all\" ends useful work, which the preset \"{}\" does not",
                table.preset
            );
            return Err(at.config_value_mistake("loops.breaker_counts", what));
        }
    }
    for detector in REPEAT_DETECTORS {
        set_thresholds(
            &mut policy,
            detector,
            saturated_count(table.warning),
            saturated_count(table.critical),
        );
    }
    set_thresholds(&mut policy, BREAKER, None, saturated_count(table.breaker));
    for (detector, own) in &table.of_detectors {
        set_thresholds(
            &mut policy,
            detector,
            saturated_count(own.warning),
            saturated_count(own.critical),
        );
    }
    // All calls of a task are more than a window: the literal breaker is not bound to it.
    let history = policy.history.unwrap_or(CALL_WINDOW_LEN as u32);
    for set in &policy.thresholds {
        let name = set.detector.as_str();
        let key = |end: &str| match name {
            BREAKER => "loops.breaker".to_owned(),
            _ if table.of_detectors.contains_key(name) => format!("loops.{name}.{end}"),
            _ => format!("loops.{end}"),
        };
        if let (Some(warning), Some(critical)) = (set.warning, set.critical)
            && warning > critical
        {
            let what =
                format!("is {warning}, above the {critical} at which '{name}' denies the call");
            return Err(at.config_value_mistake(&key("warning"), what));
        }
        // A lap has two calls or more.
        let most = match LAP_DETECTORS.contains(&name) {
            true => history / 2,
            false => history,
        };
        let is_counted_in_window = !(name == BREAKER && policy.literal_breaker);
        if let Some(critical) = set
            .critical
            .filter(|least| is_counted_in_window && *least > most)
        {
            let what = format!(
                "is {critical}, which '{name}' cannot reach: it sees {most} at most in {history} calls"
            );
            return Err(at.config_value_mistake(&key("critical"), what));
        }
    }
    Ok(policy)
}

fn saturated_count(number: Option<u64>) -> Option<u32> {
    number.map(super::saturate_u32)
}

fn set_thresholds(
    policy: &mut LoopPolicy,
    detector: &str,
    warning: Option<u32>,
    critical: Option<u32>,
) {
    if warning.is_none() && critical.is_none() {
        return;
    }
    let place = policy
        .thresholds
        .iter()
        .position(|set| set.detector.as_str() == detector);
    let before = match place {
        Some(place) => {
            let set = policy.thresholds.remove(place);
            LoopThresholds {
                warning: set.warning,
                critical: set.critical,
            }
        }
        None => detectors::detector_by_name(detector).map_or(
            LoopThresholds {
                warning: None,
                critical: None,
            },
            |detector| detector.default_thresholds(),
        ),
    };
    // A denial that is set below a warning that is not takes the warning with it.
    let kept_warning = before
        .warning
        .map(|warning| critical.map_or(warning, |critical| warning.min(critical)));
    policy.thresholds.push(DetectorThresholds {
        detector: DetectorName::new(detector),
        warning: warning.or(kept_warning),
        critical: critical.or(before.critical),
    });
    // One order, whatever the config's.
    policy
        .thresholds
        .sort_by(|one, other| one.detector.cmp(&other.detector));
}

/// Adds the detectors of a person's own config. Those of the repo keep what the repo says of them: the
/// own file can only tighten.
pub(super) fn add_detectors_of_person(policy: &mut LoopPolicy, own: LoopPolicy) {
    if policy.detectors.is_empty() {
        policy.ladder = own.ladder;
    }
    // Rules of another agent are asked beside detectors of ours, with a memory of their own.
    policy.pinned = policy.pinned.or(own.pinned);
    // What the breaker counts belongs to whoever has it.
    if !policy.detectors.iter().any(|name| name.as_str() == BREAKER) {
        policy.literal_breaker = own.literal_breaker;
    }
    for detector in own.detectors {
        if policy.detectors.contains(&detector) {
            continue;
        }
        let set = own.thresholds.iter().find(|set| set.detector == detector);
        if let Some(set) = set {
            set_thresholds(policy, detector.as_str(), set.warning, set.critical);
        }
        policy.detectors.push(detector);
    }
}
