//! Judges tool calls before they run. The checks without a model come first: whether the tool
//! exists, the arguments fit its schema and the host's policy allows the call. Then the model is
//! asked, up to a cap and never twice about the same call.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use checkrein_models::{ChatMessage, LanguageModel, ModelError, ModelReply};
use checkrein_runtime::reviewer::{PreparedModelQuestion, UnusableModelAnswer};
use checkrein_runtime::veto::{
    self, InvalidToolCallError, ModelOpinionOnToolCall, ToolCallForVeto, ToolCallVetoVerdict,
    ToolWithCompiledSchema, ToolsWithCompiledSchemas,
};
use serde_json::Value;

use super::current_run::{ModelSupervisorRunState, SharedSupervisorRunState, lock_unpoisoned};
use super::decision_cache::{CallDecisionCacheKey, canonical_json};
use super::{
    CallsReviewedByModel, PreToolDecision, SupervisedRunExpectations, SupervisionNotWorthReason,
    ToolCallVerdict, ToolCallVerdictBasis, UnjudgedReason, VerifierConfig, VerifierConfigError,
    VerifierStats,
};
use crate::Tool;
use crate::tool::model_tool_definition;

/// A host's own rules: returns why a call of this tool with these arguments must not run.
pub type HostToolCallVetoFn = dyn Fn(&str, &Value) -> Option<String> + Send + Sync;

/// Judges calls before they run. Clones share caps, memory and counters.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use checkrein::{PreToolVerifier, VerifierConfig, models::LanguageModel, models::ModelError};
/// # use serde_json::json;
/// # async fn example(cheap: Arc<dyn LanguageModel>) -> Result<(), Box<dyn std::error::Error>> {
/// let veto = PreToolVerifier::new(cheap, VerifierConfig::default())?;
/// let arguments = json!({ "channel": "#general", "text": "..." });
/// let decision = veto.judge_tool_call_by_model("draft a message to QA", "send_message", &arguments, &[]).await;
/// println!("{:?}: {}", decision.verdict, decision.reason);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PreToolVerifier {
    model: Arc<dyn LanguageModel>,
    config: VerifierConfig,
    policy: Option<Arc<HostToolCallVetoFn>>,
    expectations: SupervisedRunExpectations,
    known_tools: Arc<RwLock<Arc<KnownTools>>>,
    current_run: Arc<SharedSupervisorRunState>,
}

/// The agent's tools, as far as they are known.
#[derive(Debug, Default)]
struct KnownTools {
    definitions: Vec<checkrein_models::ToolDefinition>,
    tools: Option<ToolsWithCompiledSchemas>,
    /// Names of the read-only ones.
    read_only: BTreeSet<String>,
}

/// A call that is about to be made.
#[derive(Clone, Copy)]
pub(super) struct ProposedCall<'a> {
    pub(super) goal: &'a str,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Value,
    pub(super) history: &'a [ChatMessage],
}

impl KnownTools {
    fn find_prepared_tool<'a>(
        &'a self,
        tool: &str,
        own: Option<&'a StandaloneToolSchema>,
    ) -> Option<&'a ToolWithCompiledSchema> {
        let tools = self.tools.as_ref();
        tools
            .and_then(|tools| tools.tool_by_name(tool))
            .or(own.map(|own| &own.known))
    }
}

/// A call that the model is asked about.
struct CallPutToVetoModel {
    asking: PreparedModelQuestion,
    key: CallDecisionCacheKey,
    known_tools: Arc<KnownTools>,
}

/// The schema of a tool that is wrapped alone and not registered with the verifier.
#[derive(Debug)]
pub(super) struct StandaloneToolSchema {
    known: ToolWithCompiledSchema,
    read_only: bool,
}

impl StandaloneToolSchema {
    pub(super) fn standalone_schema_of_wrapped_tool(tool: &impl Tool) -> Self {
        Self {
            known: ToolWithCompiledSchema::new(&model_tool_definition(tool)),
            read_only: tool.is_read_only_tool(),
        }
    }
}

impl PreToolVerifier {
    /// With a model, typically a cheap one, of another family than the agent's.
    ///
    /// # Errors
    /// If the config has a setting that cannot be meant.
    pub fn new(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
    ) -> Result<Self, VerifierConfigError> {
        Self::new_verifier_sharing_run_state(model, config, Arc::default())
    }

    pub(super) fn new_verifier_sharing_run_state(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
        book: Arc<SharedSupervisorRunState>,
    ) -> Result<Self, VerifierConfigError> {
        config.validate_config()?;
        Ok(Self {
            model,
            config,
            policy: None,
            expectations: SupervisedRunExpectations::default(),
            known_tools: Arc::default(),
            current_run: book,
        })
    }

    /// Asks the host's own rules before the model, and again about what the model rewrote.
    #[must_use]
    pub fn with_host_policy(
        mut self,
        policy: impl Fn(&str, &Value) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Asks no model in a run in which that is not worth it.
    #[must_use]
    pub fn ask_model_only_if_worthwhile(mut self, expected: SupervisedRunExpectations) -> Self {
        self.expectations = expected;
        self
    }

    /// Registers tools of the agent, in addition to those registered before. Once there are any, a
    /// call of an unregistered tool is refused without asking the model.
    pub fn register_tools_agent_may_call<T: Tool>(&self, tools: &[T]) {
        let mut kit = self
            .known_tools
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // Built anew and swapped as a whole: calls that are being judged keep their own `Arc`.
        let mut all = kit.definitions.clone();
        let mut looking = kit.read_only.clone();
        for tool in tools {
            let tool_told = model_tool_definition(tool);
            // A tool of the same name replaces the earlier one, read-only mark included.
            all.retain(|other| other.name != tool_told.name);
            looking.remove(&tool_told.name);
            if tool.is_read_only_tool() {
                looking.insert(tool_told.name.clone());
            }
            all.push(tool_told);
        }
        *kit = Arc::new(KnownTools {
            tools: Some(ToolsWithCompiledSchemas::new(&all)),
            definitions: all,
            read_only: looking,
        });
    }

    /// Returns the errors in schemas of known tools that cannot be used to check arguments.
    pub fn unusable_tool_schema_warnings(&self) -> Vec<String> {
        let kit = self.known_tools_snapshot();
        let tools = kit.tools.iter();
        tools
            .flat_map(ToolsWithCompiledSchemas::unusable_tool_schema_errors)
            .map(str::to_owned)
            .collect()
    }

    /// Judges one call. Never fails: what nobody could judge is [`ToolCallVerdict::Unjudged`].
    pub fn judge_tool_call_by_model<'a>(
        &'a self,
        goal: &'a str,
        tool_name: &'a str,
        tool_args: &'a Value,
        recent_history: &'a [ChatMessage],
    ) -> impl Future<Output = PreToolDecision> + Send + 'a {
        let call = ProposedCall {
            goal,
            tool: tool_name,
            arguments: tool_args,
            history: recent_history,
        };
        self.decide_tool_call_and_count_in_stats(call, None)
    }

    /// What it did in this run.
    pub fn stats(&self) -> VerifierStats {
        self.current_run.current_run_verifier_stats()
    }

    /// Begins the next run: counters, caps and memory of calls are new, also for tools that were wrapped
    /// before.
    pub fn reset(&self) {
        self.current_run.reset_state_for_next_run();
    }

    fn known_tools_snapshot(&self) -> Arc<KnownTools> {
        self.known_tools
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Decides and counts a call. Every path comes through here, so that no call is counted twice
    /// or not at all.
    pub(super) async fn decide_tool_call_and_count_in_stats(
        &self,
        call: ProposedCall<'_>,
        own: Option<&StandaloneToolSchema>,
    ) -> PreToolDecision {
        // Taken once: if a reset comes during the question, the answer still counts for this run.
        let run = self.current_run.current_run_state();
        let decision = match self.decide_tool_call_without_model(&run, &call, own) {
            ControlFlow::Break(decision) => decision,
            ControlFlow::Continue(asked) => {
                let reply = self.model.ask_model(&asked.asking.request).await;
                self.decide_call_by_veto_model_reply(&run, &call, own, asked, reply)
            }
        };
        lock_unpoisoned(&run)
            .stats
            .count_pre_tool_decision(&decision);
        decision
    }

    /// Decides a call without the model, if possible; otherwise returns the question for the model.
    fn decide_tool_call_without_model(
        &self,
        run: &Mutex<ModelSupervisorRunState>,
        call: &ProposedCall<'_>,
        own: Option<&StandaloneToolSchema>,
    ) -> ControlFlow<PreToolDecision, CallPutToVetoModel> {
        if !self.config.veto_enabled {
            return ControlFlow::Break(PreToolDecision::unjudged_tool_call_decision(
                UnjudgedReason::Disabled,
            ));
        }
        // Misfits and the host's policy come before scope, caps and worth, which only limit the
        // model.
        let kit = self.known_tools_snapshot();
        let tools = kit.tools.as_ref();
        let known = kit.find_prepared_tool(call.tool, own);
        if let Err(misfit) = check_call_against_tool_schema(tools, known, call) {
            let why = misfit.to_string();
            return ControlFlow::Break(PreToolDecision::refused_decision(
                why,
                ToolCallVerdictBasis::Misfit(misfit),
            ));
        }
        if let Some(why) = self.embedding_app_policy_refusal(call.tool, call.arguments) {
            return ControlFlow::Break(PreToolDecision::refused_decision(
                why,
                ToolCallVerdictBasis::Policy,
            ));
        }
        let looks = own.is_some_and(|own| own.read_only) || kit.read_only.contains(call.tool);
        if self.config.scope == CallsReviewedByModel::Risky && looks {
            return ControlFlow::Break(PreToolDecision::unjudged_tool_call_decision(
                UnjudgedReason::OutOfScope,
            ));
        }
        // With a single tool there is no wrong one to choose.
        let one = tools.is_some_and(|tools| tools.len() == 1);
        if let Some(why) = self
            .expectations
            .why_run_is_not_worth_supervising()
            .or(one.then_some(SupervisionNotWorthReason::OneTool))
        {
            return ControlFlow::Break(PreToolDecision::unjudged_tool_call_decision(
                UnjudgedReason::NotWorth(why),
            ));
        }
        let arguments = canonical_json(call.arguments);
        // The cache is consulted and the cap is spent under one lock, or concurrent calls could
        // exceed it. The lock is released before the model is asked.
        let shape = {
            let mut run = lock_unpoisoned(run);
            let shape = run
                .cache
                .identical_call_key(call.goal, call.tool, arguments);
            if let Some(said) = run.cache.cached_call_decision(&shape) {
                return ControlFlow::Break(PreToolDecision {
                    cached: true,
                    ..said.clone()
                });
            }
            let cap = self.config.max_pretool_calls_per_run;
            if run.stats.pretool_asked >= cap {
                return ControlFlow::Break(PreToolDecision::unjudged_tool_call_decision(
                    UnjudgedReason::CapSpent { cap },
                ));
            }
            // Spent before the answer is there: a failing model must not be asked without limit.
            run.stats.pretool_asked += 1;
            shape
        };
        let planned = ToolCallForVeto {
            goal: call.goal,
            tool: call.tool,
            arguments: shape.canonical_arguments(),
            history: call.history,
        };
        ControlFlow::Continue(CallPutToVetoModel {
            asking: veto::build_model_question_about_call(tools, known, planned),
            key: shape,
            known_tools: kit,
        })
    }

    fn decide_call_by_veto_model_reply(
        &self,
        run: &Mutex<ModelSupervisorRunState>,
        call: &ProposedCall<'_>,
        own: Option<&StandaloneToolSchema>,
        asked: CallPutToVetoModel,
        reply: Result<ModelReply, ModelError>,
    ) -> PreToolDecision {
        let heard = veto::veto_opinion_from_reply(
            &asked.asking,
            asked.known_tools.find_prepared_tool(call.tool, own),
            reply,
        );
        let decision = match heard.result {
            Ok(opinion) => self.tool_decision_from_model_opinion(call.tool, opinion),
            // A model that fails must not block the agent; the decision says that nobody judged.
            Err(silent) => {
                PreToolDecision::unjudged_tool_call_decision(UnjudgedReason::NoAnswer(silent))
            }
        };
        let mut run = lock_unpoisoned(run);
        run.stats.add_token_usage_to_totals(heard.usage);
        // An unjudged call is not cached: the model may answer the next time.
        if decision.verdict != ToolCallVerdict::Unjudged {
            run.cache.cache_call_decision(asked.key, decision.clone());
        }
        decision
    }

    fn embedding_app_policy_refusal(&self, tool: &str, arguments: &Value) -> Option<String> {
        self.policy
            .as_ref()
            .and_then(|policy| policy(tool, arguments))
    }

    fn tool_decision_from_model_opinion(
        &self,
        tool: &str,
        opinion: ModelOpinionOnToolCall,
    ) -> PreToolDecision {
        // Confidence matters for interventions only; a hesitant `Allow` stays an `Allow`.
        let stands = opinion.veto_meets_confidence(self.config.veto_min_confidence);
        let ModelOpinionOnToolCall {
            verdict,
            reason,
            confidence,
        } = opinion;
        let (verdict, new_args) = match verdict {
            ToolCallVetoVerdict::Allow => (ToolCallVerdict::Allow, None),
            ToolCallVetoVerdict::Veto => (ToolCallVerdict::Veto, None),
            ToolCallVetoVerdict::Rewrite(arguments) => (ToolCallVerdict::Rewrite, Some(arguments)),
        };
        let said = PreToolDecision {
            verdict,
            reason,
            new_args,
            confidence,
            basis: ToolCallVerdictBasis::Model,
            cached: false,
        };
        if !stands {
            return PreToolDecision {
                verdict: ToolCallVerdict::Allow,
                new_args: None,
                basis: ToolCallVerdictBasis::TooUnsure(verdict),
                ..said
            };
        }
        let Some(arguments) = said.new_args else {
            return said;
        };
        // The rewritten arguments were checked against the schema with the reply. The host's rules
        // have not seen them yet.
        let arguments = Value::Object(arguments);
        if let Some(why) = self.embedding_app_policy_refusal(tool, &arguments) {
            return PreToolDecision::refused_decision(
                format!("as rewritten: {why}"),
                ToolCallVerdictBasis::Policy,
            );
        }
        match arguments {
            Value::Object(arguments) => PreToolDecision {
                new_args: Some(arguments),
                ..said
            },
            // Unreachable: `arguments` was made an object above.
            _ => PreToolDecision::unjudged_tool_call_decision(UnjudgedReason::NoAnswer(
                UnusableModelAnswer::NoArguments,
            )),
        }
    }
}

/// Checks a call against the known tools and their schemas.
fn check_call_against_tool_schema(
    tools: Option<&ToolsWithCompiledSchemas>,
    known: Option<&ToolWithCompiledSchema>,
    call: &ProposedCall<'_>,
) -> Result<(), InvalidToolCallError> {
    match (known, tools) {
        // Without registered tools and without a schema of its own nothing is known to be wrong.
        (Some(known), _) => known.validate_tool_call_arguments(call.tool, call.arguments),
        (None, Some(tools)) => tools.check_tool_call_schema(call.tool, call.arguments),
        (None, None) => Ok(()),
    }
}
