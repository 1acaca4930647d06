//! Runs any agent in a loop: verify its work, send it back with the failures, verify again. All
//! mutable state belongs to one call, so one loop can serve several runs at the same time.

mod agent;
mod feedback;
mod join_all;
mod verifier;

pub use agent::{Agent, AgentRun};
pub use verifier::{VerificationResult, Verifier};

use join_all::await_all_verifications;

/// Runs verifiers after an agent, and sends it back with what failed.
///
/// ```
/// use checkrein::models::{ChatMessage, BoxFuture, block_on};
/// use checkrein::{Agent, AgentRun, VerificationLoopOutcome, VerificationLoop, VerificationResult, Verifier};
///
/// /// Writes better when asked again.
/// struct Writer;
///
/// impl Agent for Writer {
///     type ConversationMessage = ChatMessage;
///     type AgentRunError = checkrein::models::ModelError;
///
///     fn run<'a>(
///         &'a self,
///         history: &'a [ChatMessage],
///         message: &'a str,
///     ) -> BoxFuture<'a, Result<AgentRun<ChatMessage>, Self::AgentRunError>> {
///         Box::pin(async move {
///             let text = if history.is_empty() { "Dear Sir" } else { "Dear Sir or Madam" };
///             let mut messages = history.to_vec();
///             messages.push(ChatMessage::User(message.to_owned()));
///             messages.push(ChatMessage::Assistant { text: text.to_owned(), calls: Vec::new() });
///             Ok(AgentRun { messages, output: text.to_owned(), edits: None })
///         })
///     }
/// }
///
/// let polite = Verifier::new("polite", |run: &AgentRun<ChatMessage>| {
///     if run.output.contains("Madam") {
///         VerificationResult::Passed
///     } else {
///         VerificationResult::Failed("greets men only".to_owned())
///     }
/// });
/// let checked = VerificationLoop::new(vec![polite]);
/// let verification = block_on(checked.run(&Writer, "Write a letter."))?;
/// assert_eq!(verification.outcome, VerificationLoopOutcome::Verified);
/// assert_eq!((verification.retries, verification.run.messages.len()), (1, 4));
/// # Ok::<(), checkrein::models::ModelError>(())
/// ```
pub struct VerificationLoop<M> {
    verifiers: Vec<Verifier<M>>,
    max_retries: u32,
    parallel: bool,
    on_edits: bool,
    same_failures: Option<u32>,
}

/// How a verification loop ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VerificationLoopOutcome<E> {
    /// All verifiers passed on the agent's last run.
    Verified,
    /// Some still fail after the last retry.
    Exhausted,
    /// Some fail, and there is no agent to send back.
    NoAgent,
    /// The same failures were met as often as the limit allows.
    NoProgress,
    /// Some verifiers are inconclusive and none fails. Sending the agent back would not change
    /// that.
    Inconclusive,
    /// The agent edited nothing, and only edits are verified.
    NothingEdited,
    /// There are no verifiers.
    NoVerifiers,
    /// The agent failed when it was sent back; the run is the one before.
    AgentFailed(E),
}

/// A run, and what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct VerificationLoopResult<M, E> {
    /// The agent's last run.
    pub run: AgentRun<M>,
    /// How the loop ended.
    pub outcome: VerificationLoopOutcome<E>,
    /// How often the agent was sent back.
    pub retries: u32,
    /// Verifiers that did not pass in the last verification, by name.
    pub failing: Vec<(String, VerificationResult)>,
}

/// Verifiers, by their place in the list, that did not pass.
type FailedVerifiers = Vec<(usize, VerificationResult)>;

impl<M: Send + Sync> VerificationLoop<M> {
    /// With these verifiers, three retries, and all verifiers at once.
    pub fn new(verifiers: Vec<Verifier<M>>) -> Self {
        Self {
            verifiers,
            max_retries: 3,
            parallel: true,
            on_edits: false,
            same_failures: None,
        }
    }

    /// Sets how often the agent is sent back at most; with 0 it is verified once and never sent
    /// back.
    #[must_use]
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.max_retries = retries;
        self
    }

    /// Whether verifiers run at once or one after the other.
    #[must_use]
    pub fn parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }

    /// Verifies only runs with edits: a first run without an edit is not verified, and after a
    /// retry without an edit the verifiers do not run again.
    #[must_use]
    pub fn skip_runs_without_edits(mut self) -> Self {
        self.on_edits = true;
        self
    }

    /// Ends the loop when the same failures are met this many times in a row.
    #[must_use]
    pub fn same_failures(mut self, times: u32) -> Self {
        self.same_failures = Some(times.max(1));
        self
    }

    /// Runs an agent, and verifies.
    ///
    /// # Errors
    /// If the agent's first run fails.
    pub async fn run<A: Agent<ConversationMessage = M>>(
        &self,
        agent: &A,
        message: &str,
    ) -> Result<VerificationLoopResult<M, A::AgentRunError>, A::AgentRunError> {
        let run = agent.run(&[], message).await?;
        Ok(self.verify(run, Some(agent)).await)
    }

    /// Verifies a run. Without an agent there are no retries.
    pub async fn verify<A: Agent<ConversationMessage = M>>(
        &self,
        run: AgentRun<M>,
        agent: Option<&A>,
    ) -> VerificationLoopResult<M, A::AgentRunError> {
        let mut call = VerificationLoopResult {
            run,
            outcome: VerificationLoopOutcome::NoVerifiers,
            retries: 0,
            failing: Vec::new(),
        };
        let mut failing = FailedVerifiers::new();
        call.outcome = self
            .verify_with_agent_retries(&mut call, &mut failing, agent)
            .await;
        let name = |at: usize| self.verifiers.get(at).map_or("", Verifier::name).to_owned();
        call.failing = failing
            .into_iter()
            .map(|(at, result)| (name(at), result))
            .collect();
        call
    }

    async fn verify_with_agent_retries<A: Agent<ConversationMessage = M>>(
        &self,
        call: &mut VerificationLoopResult<M, A::AgentRunError>,
        failing: &mut FailedVerifiers,
        agent: Option<&A>,
    ) -> VerificationLoopOutcome<A::AgentRunError> {
        if self.verifiers.is_empty() {
            return VerificationLoopOutcome::NoVerifiers;
        }
        if self.skips_run_without_edits(&call.run) {
            return VerificationLoopOutcome::NothingEdited;
        }
        *failing = self
            .run_and_collect_failed_verifiers(&self.all_verifier_indices(), &call.run)
            .await;
        let mut met = 1;
        loop {
            if failing.is_empty() {
                return VerificationLoopOutcome::Verified;
            }
            // Only inconclusive ones are left: nothing that the agent could mend.
            if failing.iter().all(|(_, result)| result.is_inconclusive()) {
                return VerificationLoopOutcome::Inconclusive;
            }
            // Before the check for an agent: with 0 retries the outcome is `Exhausted`, with or
            // without one.
            if call.retries >= self.max_retries {
                return VerificationLoopOutcome::Exhausted;
            }
            let Some(agent) = agent else {
                return VerificationLoopOutcome::NoAgent;
            };
            if self.same_failures.is_some_and(|times| met >= times) {
                return VerificationLoopOutcome::NoProgress;
            }
            call.retries += 1;
            let feedback = feedback::failure_feedback(
                &self.verifiers,
                failing,
                call.retries,
                self.max_retries,
            );
            match agent.run(&call.run.messages, &feedback).await {
                Ok(run) => call.run = run,
                // `call.run` and `failing` still describe the run before.
                Err(error) => return VerificationLoopOutcome::AgentFailed(error),
            }
            let before = std::mem::take(failing);
            *failing = if self.skips_run_without_edits(&call.run) {
                // Nothing was edited, so the old results still hold.
                before.clone()
            } else {
                self.run_failed_first(&before, &call.run).await
            };
            // Other messages count as other failures, and thus as progress.
            met = if *failing == before { met + 1 } else { 1 };
        }
    }

    fn skips_run_without_edits(&self, run: &AgentRun<M>) -> bool {
        self.on_edits && run.edits == Some(0)
    }

    fn all_verifier_indices(&self) -> Vec<usize> {
        (0..self.verifiers.len()).collect()
    }

    /// Runs the verifiers that failed before. While one of them still fails, the others need not
    /// run. Before a run is accepted, all of them run.
    async fn run_failed_first(
        &self,
        before: &FailedVerifiers,
        run: &AgentRun<M>,
    ) -> FailedVerifiers {
        let failed: Vec<usize> = before.iter().map(|(at, _)| *at).collect();
        let still = self.run_and_collect_failed_verifiers(&failed, run).await;
        if !still.is_empty() || failed.len() == self.verifiers.len() {
            return still;
        }
        self.run_and_collect_failed_verifiers(&self.all_verifier_indices(), run)
            .await
    }

    /// Runs these verifiers and returns those that did not pass.
    async fn run_and_collect_failed_verifiers(
        &self,
        which: &[usize],
        run: &AgentRun<M>,
    ) -> FailedVerifiers {
        let chosen = || {
            which
                .iter()
                .filter_map(|at| Some((*at, self.verifiers.get(*at)?)))
        };
        // In the order of the list, run in parallel or not, so that equal failures compare as
        // equal.
        let mut failing = FailedVerifiers::new();
        if self.parallel && which.len() > 1 {
            let checks = chosen()
                .map(|(_, verifier)| verifier.start_verifier(run))
                .collect();
            let results = await_all_verifications(checks).await;
            // `chosen` yields the same order again, so each result meets its verifier.
            let results = chosen().map(|(at, _)| at).zip(results);
            failing.extend(results.filter(|(_, result)| !result.is_passed()));
        } else {
            for (at, verifier) in chosen() {
                let result = verifier.start_verifier(run).await;
                if !result.is_passed() {
                    failing.push((at, result));
                }
            }
        }
        failing
    }
}
