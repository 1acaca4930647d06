//! Verify, send back, verify again: around any agent. Everything that changes belongs to one call, so one
//! loop serves as many runs at once as there are.

mod agent;
mod feedback;
mod together;
mod verifier;

pub use agent::{Agent, AgentRun};
pub use verifier::{VerificationResult, Verifier};

use together::together;

/// Runs verifiers after an agent, and sends it back with what failed.
///
/// ```
/// use checkrein::models::{Message, Pending, wait};
/// use checkrein::{Agent, AgentRun, Outcome, VerificationLoop, VerificationResult, Verifier};
///
/// /// Writes better when asked again.
/// struct Writer;
///
/// impl Agent for Writer {
///     type Message = Message;
///     type Error = checkrein::models::ModelError;
///
///     fn run<'a>(
///         &'a self,
///         history: &'a [Message],
///         message: &'a str,
///     ) -> Pending<'a, Result<AgentRun<Message>, Self::Error>> {
///         Box::pin(async move {
///             let text = if history.is_empty() { "Dear Sir" } else { "Dear Sir or Madam" };
///             let mut messages = history.to_vec();
///             messages.push(Message::User(message.to_owned()));
///             messages.push(Message::Assistant { text: text.to_owned(), calls: Vec::new() });
///             Ok(AgentRun { messages, output: text.to_owned(), edits: None })
///         })
///     }
/// }
///
/// let polite = Verifier::new("polite", |run: &AgentRun<Message>| {
///     if run.output.contains("Madam") {
///         VerificationResult::Passed
///     } else {
///         VerificationResult::Failed("greets men only".to_owned())
///     }
/// });
/// let checked = VerificationLoop::new(vec![polite]);
/// let verification = wait(checked.run(&Writer, "Write a letter."))?;
/// assert_eq!(verification.outcome, Outcome::Verified);
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

/// How a run came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome<E> {
    /// All verifiers passed, on what the agent left.
    Verified,
    /// Some still fail after the last retry.
    Exhausted,
    /// Some fail, and there is no agent to send back.
    NoAgent,
    /// The same failures as often as may be: going on is not worth it.
    NoProgress,
    /// None fails, and of some nobody knows: sending an agent back for that would change nothing.
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
pub struct Verification<M, E> {
    /// The agent's last run.
    pub run: AgentRun<M>,
    /// How it came out.
    pub outcome: Outcome<E>,
    /// How often the agent was sent back.
    pub retries: u32,
    /// What did not pass when it was last looked at, by the verifier's name.
    pub failing: Vec<(String, VerificationResult)>,
}

/// Verifiers, by their place in the list, that did not pass.
type Failing = Vec<(usize, VerificationResult)>;

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

    /// How often the agent is sent back at most; with 0 it is verified once and never sent back.
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

    /// Verifies only what was edited: a run without an edit is passed over, and after a retry without one
    /// nothing runs again.
    #[must_use]
    pub fn on_edits(mut self) -> Self {
        self.on_edits = true;
        self
    }

    /// Ends it when the same failures are met for this many times in a row.
    #[must_use]
    pub fn same_failures(mut self, times: u32) -> Self {
        self.same_failures = Some(times.max(1));
        self
    }

    /// Runs an agent, and verifies.
    ///
    /// # Errors
    /// If the agent's first run fails.
    pub async fn run<A: Agent<Message = M>>(
        &self,
        agent: &A,
        message: &str,
    ) -> Result<Verification<M, A::Error>, A::Error> {
        let run = agent.run(&[], message).await?;
        Ok(self.verify(run, Some(agent)).await)
    }

    /// Verifies what an agent did; without an agent it can only say how that came out.
    pub async fn verify<A: Agent<Message = M>>(
        &self,
        run: AgentRun<M>,
        agent: Option<&A>,
    ) -> Verification<M, A::Error> {
        let mut call = Verification {
            run,
            outcome: Outcome::NoVerifiers,
            retries: 0,
            failing: Vec::new(),
        };
        let mut failing = Failing::new();
        call.outcome = self.until_settled(&mut call, &mut failing, agent).await;
        let name = |at: usize| self.verifiers.get(at).map_or("", Verifier::name).to_owned();
        call.failing = failing
            .into_iter()
            .map(|(at, result)| (name(at), result))
            .collect();
        call
    }

    async fn until_settled<A: Agent<Message = M>>(
        &self,
        call: &mut Verification<M, A::Error>,
        failing: &mut Failing,
        agent: Option<&A>,
    ) -> Outcome<A::Error> {
        if self.verifiers.is_empty() {
            return Outcome::NoVerifiers;
        }
        if self.is_unedited(&call.run) {
            return Outcome::NothingEdited;
        }
        *failing = self.round(&self.all(), &call.run).await;
        let mut met = 1;
        loop {
            if failing.is_empty() {
                return Outcome::Verified;
            }
            if failing.iter().all(|(_, result)| result.is_inconclusive()) {
                return Outcome::Inconclusive;
            }
            if call.retries >= self.max_retries {
                return Outcome::Exhausted;
            }
            let Some(agent) = agent else {
                return Outcome::NoAgent;
            };
            if self.same_failures.is_some_and(|times| met >= times) {
                return Outcome::NoProgress;
            }
            call.retries += 1;
            let feedback = feedback::of(&self.verifiers, failing, call.retries, self.max_retries);
            match agent.run(&call.run.messages, &feedback).await {
                Ok(run) => call.run = run,
                Err(error) => return Outcome::AgentFailed(error),
            }
            let before = std::mem::take(failing);
            *failing = if self.is_unedited(&call.run) {
                before.clone()
            } else {
                self.again(&before, &call.run).await
            };
            met = if *failing == before { met + 1 } else { 1 };
        }
    }

    fn is_unedited(&self, run: &AgentRun<M>) -> bool {
        self.on_edits && run.edits == Some(0)
    }

    fn all(&self) -> Vec<usize> {
        (0..self.verifiers.len()).collect()
    }

    /// Those that failed first: as long as one of them does, the others need not run. Before anything is
    /// accepted all do.
    async fn again(&self, before: &Failing, run: &AgentRun<M>) -> Failing {
        let failed: Vec<usize> = before.iter().map(|(at, _)| *at).collect();
        let still = self.round(&failed, run).await;
        if !still.is_empty() || failed.len() == self.verifiers.len() {
            return still;
        }
        self.round(&self.all(), run).await
    }

    /// Runs these; what did not pass.
    async fn round(&self, which: &[usize], run: &AgentRun<M>) -> Failing {
        let chosen = || {
            which
                .iter()
                .filter_map(|at| Some((*at, self.verifiers.get(*at)?)))
        };
        let mut failing = Failing::new();
        if self.parallel && which.len() > 1 {
            let checks = chosen().map(|(_, verifier)| verifier.start(run)).collect();
            let results = together(checks).await;
            let results = chosen().map(|(at, _)| at).zip(results);
            failing.extend(results.filter(|(_, result)| !result.is_passed()));
        } else {
            for (at, verifier) in chosen() {
                let result = verifier.start(run).await;
                if !result.is_passed() {
                    failing.push((at, result));
                }
            }
        }
        failing
    }
}
