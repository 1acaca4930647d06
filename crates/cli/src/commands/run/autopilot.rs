//! `--autopilot GOAL.toml`: a run that ends when its criteria are met or its budget is spent. The
//! same command resumes it where it was. At its end it says on which evidence each criterion rests.

use std::path::{Path, PathBuf};

use checkrein::{LoopResult, stored_conversation_model_and_purpose};
use checkrein_core::digest::Digest;
use checkrein_core::event::{self, Event};
use checkrein_core::evidence::{InconclusiveCause, Verdict};
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_core::input::Input;
use checkrein_core::policy::VerifierSpec;
use checkrein_core::transition::Reason;
use checkrein_runtime::config::{self, Goal};
use checkrein_runtime::{GuardedFilesReader, PolicyCompileFn, durable_file};
use checkrein_store::{EffectClaimGuard, SqliteStore, Store as _};
use serde_json::{Value, json};

use crate::commands::engine;
use crate::locate::{self, ProjectLocation};
use crate::ui::errors::CommandError;
use crate::{guarded_files, ui};

/// Newest tasks that are searched for one of this goal.
const LOOK_BACK: usize = 1000;

/// A goal, and the file it was read from.
pub(super) struct AutopilotGoal {
    goal: Goal,
    file: PathBuf,
}

/// One criterion, and the evidence that it rests on.
pub(crate) struct GoalCriterionResult {
    name: String,
    what: String,
    /// The newest evidence; `None` if it was never looked at.
    evidence: Option<GoalCriterionEvidence>,
}

/// The newest evidence of a criterion.
struct GoalCriterionEvidence {
    verdict: Verdict,
    cause: Option<InconclusiveCause>,
    evidence: Digest,
    /// Whether it is about the accepted tree; otherwise about the tree that was looked at last.
    is_current: bool,
}

impl AutopilotGoal {
    pub(super) fn read_goal_file(file: &Path) -> Result<Self, CommandError> {
        let source = locate::read_config_source(file)?.ok_or_else(|| {
            CommandError::usage_error(
                format!("there is no file {}", file.display()),
                "write one: goal = \"...\", model = \"PROVIDER/MODEL\", and a [[criterion]] as a [[verifier]]",
            )
        })?;
        Ok(Self {
            goal: Goal::parse_goal(&source)?,
            // The path is part of the goal's identity: two spellings of one file must not be two
            // goals.
            file: file.canonicalize().unwrap_or_else(|_| file.to_owned()),
        })
    }

    pub(super) fn model_named_by_goal(&self) -> Option<&str> {
        self.goal.model.as_deref()
    }

    /// Returns the prompt for the model.
    pub(super) fn goal_task_prompt(&self) -> String {
        let mut text = format!(
            "{}\n\nThat is reached when all of this holds; Checkrein looks at it, nobody else:\n",
            self.goal.goal.trim()
        );
        for criterion in self.goal.criteria() {
            let name = criterion.name.as_str();
            text.push_str(&format!("- {name}: {}\n", goal_criterion_text(criterion)));
        }
        text
    }

    /// Identifies the goal of a conversation: the path of its file, and the digest of its content.
    pub(super) fn goal_identity_json(&self) -> String {
        json!({ "goal": self.file, "digest": self.goal.digest }).to_string()
    }

    /// Claims the right to work for this goal in this tree, for one process at a time.
    pub(super) fn claim_goal_for_process(
        &self,
        store: &SqliteStore,
        located: &ProjectLocation,
    ) -> Result<EffectClaimGuard, CommandError> {
        let root = located.place.root.as_os_str().as_encoded_bytes();
        let file = self.file.as_os_str().as_encoded_bytes();
        // The claim is freed by the death of its process, so a killed run does not block its
        // goal.
        let claim = store.try_claim_effect(&Digest::hash_parts([&b"autopilot"[..], file, root]))?;
        claim.ok_or_else(|| {
            CommandError::cli_failure_error("that goal is at work already, in another process")
        })
    }

    /// Returns the session of this goal in this tree that is still open or waits for a person. If
    /// the goal was edited since, its session is not resumed, and that is said.
    pub(super) fn resumable_goal_session(
        &self,
        store: &SqliteStore,
        located: &ProjectLocation,
        say: &dyn Fn(&str),
    ) -> Result<Option<SessionId>, CommandError> {
        let root = located.place.root.display().to_string();
        for task in store.newest_task_summaries(None, LOOK_BACK)? {
            // Only sessions of our own loop record the purpose of their conversation.
            if task.root != root || task.agent.as_str() != "agent-loop" {
                continue;
            }
            let errand = stored_conversation_model_and_purpose(store, &task.session)?
                .and_then(|of| of.purpose);
            let Some(errand) = errand else { continue };
            let named: Value = serde_json::from_str(&errand).unwrap_or_default();
            if named.get("goal") != Some(&json!(self.file)) {
                continue;
            }
            // The newest session decides how the goal stands, so the search ends with it.
            let goes_on = [None, Some(Reason::AwaitingHuman.as_str())];
            let goes_on = goes_on.contains(&task.reason.as_deref());
            let session = task.session;
            // An edited goal is another goal: what was met under its old text says nothing about
            // it.
            if errand != self.goal_identity_json() {
                say(&format!(
                    "checkrein: {} is not what it was in session {}: this is another goal, which begins anew",
                    self.file.display(),
                    session.as_str()
                ));
                return Ok(None);
            }
            if goes_on {
                say(&format!(
                    "checkrein: goes on with session {}",
                    session.as_str()
                ));
            }
            return Ok(goes_on.then_some(session));
        }
        Ok(None)
    }

    /// Returns a reader of the place's guarded files that includes the goal: an edit of it is a
    /// finding.
    pub(super) fn guarded_files_hasher(
        &self,
        located: &ProjectLocation,
    ) -> Box<GuardedFilesReader> {
        let (located, file) = (located.clone(), self.file.clone());
        Box::new(move |root| {
            let mut seen = guarded_files::hash_guarded_files(&located, root);
            if let Ok(Some(bytes)) =
                durable_file::read_regular_file(&file, durable_file::MAX_CONFIG_BYTES)
            {
                let name = file.strip_prefix(root).unwrap_or(&file);
                let name = name.display().to_string();
                seen.others.insert(name, Digest::hash_bytes(&bytes));
            }
            seen
        })
    }

    /// Returns the policy of the place with the goal required as well, and the goal's file
    /// protected.
    pub(super) fn policy_compiler_for_goal(
        &self,
        located: &ProjectLocation,
        attempts: Option<u32>,
    ) -> Box<PolicyCompileFn> {
        let (goal, located, file) = (self.goal.clone(), located.clone(), self.file.clone());
        let before = engine::policy_compiler_for_run(&located, attempts);
        Box::new(move || {
            let mut compiled = before()?;
            goal.add_goal_to_policy(&mut compiled)?;
            // The protected paths are set anew with the goal's file among them, or the agent could
            // lower the bar that it is measured by.
            let mut protected = guarded_files::paths_no_call_may_write(&located, &compiled.sources);
            protected.extend(file.to_str().map(str::to_owned));
            config::protect_paths_in_policy(&mut compiled.policy, protected);
            Ok(compiled)
        })
    }

    /// Returns what was found out about each criterion.
    pub(super) fn goal_criterion_results(
        &self,
        store: &SqliteStore,
        result: &LoopResult,
    ) -> Result<Vec<GoalCriterionResult>, CommandError> {
        // Only an accepted ending is about the tree as it is; other evidence may be older than
        // the last edit.
        let stands = result.transition.reason == Reason::TaskComplete;
        let mut facts = Vec::new();
        for raw in store.events_after(&result.session, EventSeq(0))? {
            if let Ok(Event::Input(stamped)) = event::decode_event(&raw.payload)
                && let Input::EvidenceArrived(arrived) = stamped.input
            {
                facts.push(arrived.evidence);
            }
        }
        let criteria = self.goal.criteria().iter().map(|criterion| {
            let newest = facts.iter().rfind(|fact| fact.verifier == criterion.name);
            GoalCriterionResult {
                name: criterion.name.as_str().to_owned(),
                what: goal_criterion_text(criterion),
                evidence: newest.map(|fact| GoalCriterionEvidence {
                    verdict: fact.verdict,
                    cause: fact.cause,
                    evidence: fact.key,
                    is_current: stands,
                }),
            }
        });
        Ok(criteria.collect())
    }
}

/// Returns a criterion in a few words: the command that it runs, what it asks, or its kind.
fn goal_criterion_text(criterion: &VerifierSpec) -> String {
    let definition: Value = serde_json::from_str(&criterion.definition).unwrap_or_default();
    let word = |key| definition.get(key).and_then(Value::as_str);
    let told = word("run").or(word("ask"));
    told.map_or_else(|| criterion.kind.clone(), str::to_owned)
}

/// Prints criterion and evidence, a line each.
pub(super) fn print_goal_criterion_results(criteria: &[GoalCriterionResult]) {
    let width = criteria.iter().map(|one| one.name.chars().count()).max();
    let width = width.unwrap_or_default();
    for GoalCriterionResult {
        name,
        what,
        evidence: found,
    } in criteria
    {
        let (mark, evidence) = match found {
            None => ("none", "never looked at".to_owned()),
            Some(found) => {
                let mut key = found.evidence.to_hex();
                key.truncate(12);
                let mark = match found.verdict {
                    Verdict::Pass => "pass",
                    Verdict::Fail => "FAIL",
                    Verdict::Inconclusive => "????",
                };
                let when = if found.is_current {
                    ""
                } else {
                    ", when it was looked at last"
                };
                (mark, format!("evidence {key}{when}"))
            }
        };
        ui::print_line_to_stdout(&format!("  {mark}  {name:<width$}  {evidence}  {what}"));
    }
}

/// Returns the criteria as JSON.
pub(super) fn goal_criteria_json(criteria: &[GoalCriterionResult]) -> Value {
    let criteria = criteria.iter().map(
        |GoalCriterionResult {
             name,
             what,
             evidence: found,
         }| {
            let found = found.as_ref();
            json!({
                "name": name,
                "what": what,
                "verdict": found.map(|found| found.verdict),
                "cause": found.and_then(|found| found.cause),
                "evidence": found.map(|found| found.evidence),
                "stands": found.map(|found| found.is_current),
            })
        },
    );
    criteria.collect()
}
