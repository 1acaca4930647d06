//! Compiles the policy of an agent loop: the config's policy, with the host's settings in place of
//! the config's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use checkrein_core::detectors;
use checkrein_core::ids::DetectorName;
use checkrein_core::policy::{Policy, TokenBudgetSettings};
use checkrein_runtime::HostVerifiers;
use checkrein_runtime::config::{
    self, CompiledPolicy, ConfigError, NamedConfigText, TaskDriverKind,
};

use super::reflection::SelfReflectionConfig;

/// Caps that end a run in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardCaps {
    /// Model answers.
    pub max_iterations: u64,
    /// Output tokens, thinking included.
    pub token_budget: u64,
    /// Time of model and tools, without the time of checks.
    pub wall_clock: Duration,
    /// Tool calls, refused ones included.
    pub tool_calls: u64,
    /// Millionths of a dollar, for the agent and the models that judge it; `None` sets no cap.
    pub cost: Option<u64>,
}

impl Default for HardCaps {
    fn default() -> Self {
        Self {
            max_iterations: 90,
            token_budget: 1_000_000,
            wall_clock: Duration::from_secs(3600),
            tool_calls: 500,
            cost: None,
        }
    }
}

impl HardCaps {
    /// Returns the caps of the `createAgentLoop` sketch: 30 rounds, 100,000 tokens, 600 seconds.
    pub fn create_agent_loop_preset() -> Self {
        Self {
            max_iterations: 30,
            token_budget: 100_000,
            wall_clock: Duration::from_secs(600),
            ..Self::default()
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct AgentLoopSettings {
    pub(super) caps: Option<HardCaps>,
    pub(super) token_budget: Option<TokenBudgetSettings>,
    pub(super) detectors: Option<Vec<String>>,
    pub(super) reflection: Option<SelfReflectionConfig>,
    pub(super) config: Option<String>,
    /// The model's name, if it has no price.
    pub(super) unpriced: Option<String>,
}

impl AgentLoopSettings {
    /// Checks the host's settings.
    pub(super) fn validate_host_settings(&self) -> Result<(), ConfigError> {
        // A cap of 0 would end every run at its first call. It is a mistake of the host, which
        // takes 0 for "no cap".
        if let Some(caps) = &self.caps {
            let all = [
                ("max_iterations", caps.max_iterations == 0),
                ("token_budget", caps.token_budget == 0),
                ("wall_clock", caps.wall_clock.as_millis() == 0),
                ("tool_calls", caps.tool_calls == 0),
                ("cost", caps.cost == Some(0)),
            ];
            if let Some((key, _)) = all.iter().find(|(_, zero)| *zero) {
                return Err(agent_loop_setting_error(
                    &format!("hard_caps.{key}"),
                    "is 0, with which nothing could be done; every cap is at least 1",
                ));
            }
        }
        if let Some((key, what)) = self
            .reflection
            .and_then(SelfReflectionConfig::first_invalid_reflect_setting)
        {
            return Err(agent_loop_setting_error(key, what));
        }
        let named = self.detectors.iter().flatten();
        let unknown = |name: &&String| {
            !detectors::ALL
                .iter()
                .any(|known| known.detector_name() == *name)
        };
        if let Some(unknown) = named.clone().find(unknown) {
            let known: Vec<&str> = detectors::ALL
                .iter()
                .map(|known| known.detector_name())
                .collect();
            let what = format!("has no '{unknown}'; known: {}", known.join(", "));
            return Err(agent_loop_setting_error("detectors", &what));
        }
        if let Some(budget) = &self.token_budget
            && !(1..=1000).contains(&budget.threshold_permille)
        {
            let what = "must be from 1 to 1000 thousandths";
            return Err(agent_loop_setting_error(
                "token_budget.threshold_permille",
                what,
            ));
        }
        Ok(())
    }

    /// Compiles the config that the loop's own engine seals, without the host's settings.
    pub(super) fn compile_config_without_host_settings(
        &self,
        root: &Path,
    ) -> Result<CompiledPolicy, ConfigError> {
        let source = self.config.as_ref().map(|text| NamedConfigText {
            name: root.join("checkrein.toml"),
            text: text.clone(),
        });
        config::compile_repo_and_personal_config(source.as_ref(), None, TaskDriverKind::Run)
    }

    /// Replaces settings of the policy with those of the host.
    pub(super) fn apply_host_program_settings(
        &self,
        compiled: &mut CompiledPolicy,
        hosts: &HostVerifiers,
    ) -> Result<(), ConfigError> {
        let policy = &mut compiled.policy;
        if let Some(caps) = &self.caps {
            policy.caps.max_iterations = Some(caps.max_iterations);
            policy.caps.token_budget = Some(caps.token_budget);
            policy.caps.tool_calls = Some(caps.tool_calls);
            // Unlike the other caps, this one is optional: the host's `None` keeps the config's
            // cap.
            policy.caps.cost = caps.cost.or(policy.caps.cost);
            let milliseconds = caps.wall_clock.as_millis();
            policy.caps.wall_clock_ms = Some(u64::try_from(milliseconds).unwrap_or(u64::MAX));
        }
        if let Some(budget) = self.token_budget {
            policy.token_budget = budget;
        }
        if let Some(named) = &self.detectors {
            // In the order of `ALL`, whatever the host's: two orders of the same detectors must
            // give one policy.
            let wanted = detectors::ALL.iter().map(|known| known.detector_name());
            let wanted = wanted.filter(|name| named.iter().any(|asked| asked == name));
            policy.loops.detectors = wanted.map(DetectorName::new).collect();
        }
        hosts
            .add_required_verifiers_to_policy(policy)
            .map_err(|name| {
                let what = "is the name of a verifier of the config, too; give it another";
                agent_loop_setting_error(&format!("verifier '{}'", name.as_str()), what)
            })?;
        require_price_for_cost_cap(self.unpriced.as_deref(), policy)
    }
}

/// Checks that a cost cap can be enforced. `unpriced` is the model's name, if it has no price.
pub(super) fn require_price_for_cost_cap(
    unpriced: Option<&str>,
    policy: &Policy,
) -> Result<(), ConfigError> {
    match unpriced {
        Some(model) if policy.caps.cost.or(policy.session_caps.cost).is_some() => {
            let what = format!(
                "cannot be held: nobody knows what '{model}' costs; give its price, or leave it out"
            );
            Err(agent_loop_setting_error("caps.cost_usd", &what))
        }
        _ => Ok(()),
    }
}

pub(super) fn agent_loop_setting_error(key: &str, what: &str) -> ConfigError {
    ConfigError::Value {
        name: PathBuf::from("AgentLoop"),
        key: key.to_owned(),
        what: what.to_owned(),
    }
}
