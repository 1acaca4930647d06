//! Verifiers that a host of the library provides: functions in this process, which its policies
//! require in `accept`.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use checkrein_core::accept::AcceptExpr;
use checkrein_core::evidence::{
    CheckRetryability, Finding, FindingStatusAgainstBaseline, InconclusiveCause, Verdict,
};
use checkrein_core::ids::VerifierName;
use checkrein_core::policy::{Policy, Stance, VerdictSubjectKind, VerifierSpec, VerifierTier};
use checkrein_verifiers::VerifierReport;

/// The name of this kind in policies.
const KIND: &str = "host";

/// How much of a reason is kept.
const MAX_REASON_CHARS: usize = 4 * 1024;

/// The result of such a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFunctionVerdict {
    /// Whether everything is as it should be.
    pub passed: bool,
    /// Why not, in words that help the agent to mend it.
    pub reason: String,
    /// Whether anything the agent does could change the result.
    pub can_retry: bool,
}

type HostVerifierFn = dyn Fn() -> HostFunctionVerdict + Send + Sync;

/// The functions of one host, by name.
#[derive(Clone, Default)]
pub struct HostVerifiers(BTreeMap<VerifierName, Arc<HostVerifierFn>>);

impl HostVerifiers {
    /// Adds a function; it replaces an earlier one of the same name.
    #[must_use]
    pub fn with_host_verifier(
        mut self,
        name: &str,
        ask: impl Fn() -> HostFunctionVerdict + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(VerifierName::new(name), Arc::new(ask));
        self
    }

    /// Makes a policy require all of these, beside what it requires already.
    ///
    /// # Errors
    /// The name that it has for something else.
    pub fn add_required_verifiers_to_policy(
        &self,
        policy: &mut Policy,
    ) -> Result<(), VerifierName> {
        // Checked before anything is changed, so that a refused policy stays as it was.
        if let Some(taken) = self
            .0
            .keys()
            .find(|name| policy.verifier_spec(name).is_some())
        {
            return Err(taken.clone());
        }
        let before = std::mem::replace(&mut policy.accept, AcceptExpr::All(Vec::new()));
        let all = self.0.keys().cloned().map(AcceptExpr::Verifier);
        policy.accept = AcceptExpr::All(std::iter::once(before).chain(all).collect());
        policy
            .verifiers
            .extend(self.0.keys().map(host_verifier_spec));
        Ok(())
    }

    pub(crate) fn call_host_verifier(&self, name: &VerifierName) -> VerifierReport {
        let Some(ask) = self.0.get(name) else {
            let why = "this process does not have the function that was to be asked";
            return VerifierReport::inconclusive_report(
                InconclusiveCause::Internal,
                CheckRetryability::No,
                why,
            );
        };
        // A function of the host that panics must not take the judging process with it.
        match catch_unwind(AssertUnwindSafe(|| ask())) {
            Ok(found) => report_from_host_function_verdict(found),
            Err(panic) => {
                let said = panic.downcast_ref::<&str>().copied();
                let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
                let why = format!("it panicked: {}", said.unwrap_or("without a word"));
                VerifierReport::inconclusive_report(
                    InconclusiveCause::Crash,
                    CheckRetryability::Yes,
                    why,
                )
            }
        }
    }
}

fn host_verifier_spec(name: &VerifierName) -> VerifierSpec {
    VerifierSpec {
        name: name.clone(),
        kind: KIND.to_owned(),
        tier: VerifierTier::Hard,
        subject: VerdictSubjectKind::Stop,
        definition: "{}".to_owned(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        // The function runs in this process and cannot be ended, so it has no timeout.
        timeout_ms: 0,
        retries: 0,
        advisory: false,
        stance: Stance::Block,
        judge: None,
    }
}

fn report_from_host_function_verdict(found: HostFunctionVerdict) -> VerifierReport {
    let why: String = found.reason.chars().take(MAX_REASON_CHARS).collect();
    let retryable = match found.can_retry {
        true => CheckRetryability::Yes,
        false => CheckRetryability::No,
    };
    let mut report =
        VerifierReport::inconclusive_report(InconclusiveCause::Internal, retryable, why.clone());
    // The base of the report is inconclusive; verdict and cause are set here.
    report.cause = None;
    if found.passed {
        report.verdict = Verdict::Pass;
        return report;
    }
    report.verdict = Verdict::Fail;
    let line: String = why.lines().next().unwrap_or_default().to_owned();
    if !line.is_empty() {
        // A different reason is a different failure: an agent that makes progress is not stuck.
        report.findings.push(Finding {
            id: line.clone(),
            file: None,
            line: None,
            rule: None,
            message: line,
            state: FindingStatusAgainstBaseline::New,
        });
        report.findings_total = 1;
    }
    report
}
