//! Defines the supervisor's settings and their defaults.

use checkrein_runtime::reviewer::UnitFraction;

/// Settings of the supervisor.
///
/// ```
/// use checkrein::{UnitFraction, VerifierConfig};
///
/// let config = VerifierConfig {
///     veto_min_confidence: "0.8".parse()?,
///     progress_window: 5,
///     ..VerifierConfig::default()
/// };
/// assert_eq!(config.progress_threshold, UnitFraction::share_from_thousandths(400));
/// # Ok::<(), checkrein::ParseFractionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifierConfig {
    /// Whether calls are judged before they run.
    pub veto_enabled: bool,
    /// Least confidence of a veto or a rewrite; below it the call is allowed.
    pub veto_min_confidence: UnitFraction,
    /// Whether steps are rated.
    pub progress_enabled: bool,
    /// A step with a lower score counts as without progress.
    pub progress_threshold: UnitFraction,
    /// Number of consecutive steps without progress that lead to a nudge.
    pub progress_window: u32,
    /// Most calls that the model is asked about in a run.
    pub max_pretool_calls_per_run: u32,
    /// Most steps that it is asked about in a run.
    pub max_progress_calls_per_run: u32,
    /// Which calls it is asked about.
    pub scope: CallsReviewedByModel,
}

/// Which calls the model is asked about. What needs no model is checked for every call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallsReviewedByModel {
    /// All.
    #[default]
    All,
    /// Calls of tools that are not read-only ([`Tool::is_read_only_tool`](crate::Tool::is_read_only_tool)).
    Risky,
}

impl Default for VerifierConfig {
    fn default() -> Self {
        Self {
            veto_enabled: true,
            veto_min_confidence: UnitFraction::share_from_thousandths(600),
            progress_enabled: true,
            progress_threshold: UnitFraction::share_from_thousandths(400),
            progress_window: 3,
            max_pretool_calls_per_run: 50,
            max_progress_calls_per_run: 30,
            scope: CallsReviewedByModel::All,
        }
    }
}

/// A setting with which nothing would ever happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{key}' is 0, with which {so}; to switch that off say {instead}")]
pub struct VerifierConfigError {
    key: &'static str,
    so: &'static str,
    instead: &'static str,
}

impl VerifierConfig {
    /// Checks the settings.
    ///
    /// # Errors
    /// If a setting is 0 where that would silently switch a part off; the error names the explicit
    /// switch.
    pub fn validate_config(&self) -> Result<(), VerifierConfigError> {
        let veto = "'veto_enabled: false'";
        let progress = "'progress_enabled: false'";
        // A zero is refused because it would switch a half off without saying so.
        let zeros = [
            (
                "max_pretool_calls_per_run",
                self.max_pretool_calls_per_run == 0,
                "no call would be judged",
                veto,
            ),
            (
                "max_progress_calls_per_run",
                self.max_progress_calls_per_run == 0,
                "no step would be rated",
                progress,
            ),
            (
                "progress_window",
                self.progress_window == 0,
                "every step would be followed by a nudge",
                progress,
            ),
            (
                "progress_threshold",
                self.progress_threshold == UnitFraction::ZERO,
                "no score is below it",
                progress,
            ),
        ];
        match zeros.into_iter().find(|(_, zero, ..)| *zero) {
            None => Ok(()),
            Some((key, _, so, instead)) => Err(VerifierConfigError { key, so, instead }),
        }
    }
}
