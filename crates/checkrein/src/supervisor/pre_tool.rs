//! Should this call run? What needs no model first: is there such a tool, do the arguments fit, does the host's
//! policy allow it. Then the model, as often as it may, and about no call twice.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use checkrein_models::{ChatMessage, LanguageModel, ModelError, ModelReply};
use checkrein_runtime::veto::{
    self, InvalidToolCallError, ModelOpinionOnToolCall, ToolCallForVeto, ToolCallVetoVerdict,
    ToolWithCompiledSchema, ToolsPreparedForVeto,
};
use checkrein_runtime::witness::{PreparedModelQuestion, UnusableModelAnswer};
use serde_json::Value;

use super::book::{Book, Run, lock};
use super::shapes::{Shape, canonical};
use super::{
    Basis, ConfigError, Expected, NotWorth, PreToolDecision, Scope, Unjudged, VerifierConfig,
    VerifierStats, VerifierVerdict,
};
use crate::Tool;
use crate::tool::told;

/// A host's own rules: why a call of this tool with these arguments must not run, if it must not.
pub type Policy = dyn Fn(&str, &Value) -> Option<String> + Send + Sync;

/// Judges calls before they run. Clones share caps, memory and counters.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use checkrein::{PreToolVerifier, VerifierConfig, models::Model, models::ModelError};
/// # use serde_json::json;
/// # async fn example(cheap: Arc<dyn Model>) -> Result<(), Box<dyn std::error::Error>> {
/// let veto = PreToolVerifier::new(cheap, VerifierConfig::default())?;
/// let arguments = json!({ "channel": "#general", "text": "..." });
/// let decision = veto.check("draft a message to QA", "send_message", &arguments, &[]).await;
/// println!("{:?}: {}", decision.verdict, decision.reason);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PreToolVerifier {
    model: Arc<dyn LanguageModel>,
    config: VerifierConfig,
    policy: Option<Arc<Policy>>,
    expected: Expected,
    kit: Arc<RwLock<Arc<Kit>>>,
    book: Arc<Book>,
}

/// The tools that the agent has, as far as they are known.
#[derive(Debug, Default)]
struct Kit {
    told: Vec<checkrein_models::ToolDefinition>,
    tools: Option<ToolsPreparedForVeto>,
    /// Names of those that only look.
    looking: BTreeSet<String>,
}

/// A call that is about to be made.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) goal: &'a str,
    pub(super) tool: &'a str,
    pub(super) arguments: &'a Value,
    pub(super) history: &'a [ChatMessage],
}

impl Kit {
    fn known<'a>(&'a self, tool: &str, own: Option<&'a Own>) -> Option<&'a ToolWithCompiledSchema> {
        let tools = self.tools.as_ref();
        tools
            .and_then(|tools| tools.tool_by_name(tool))
            .or(own.map(|own| &own.known))
    }
}

/// A call that the model is asked about.
struct Asked {
    asking: PreparedModelQuestion,
    shape: Shape,
    kit: Arc<Kit>,
}

/// A tool that knows itself: in a wrapper of its own.
#[derive(Debug)]
pub(super) struct Own {
    known: ToolWithCompiledSchema,
    looks: bool,
}

impl Own {
    pub(super) fn of(tool: &impl Tool) -> Self {
        Self {
            known: ToolWithCompiledSchema::new(&told(tool)),
            looks: tool.read_only(),
        }
    }
}

impl PreToolVerifier {
    /// With a model, typically a cheap one, of another family than the agent's.
    ///
    /// # Errors
    /// If the config has a setting that cannot be meant.
    pub fn new(model: Arc<dyn LanguageModel>, config: VerifierConfig) -> Result<Self, ConfigError> {
        Self::sharing(model, config, Arc::default())
    }

    pub(super) fn sharing(
        model: Arc<dyn LanguageModel>,
        config: VerifierConfig,
        book: Arc<Book>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            model,
            config,
            policy: None,
            expected: Expected::default(),
            kit: Arc::default(),
            book,
        })
    }

    /// Asks the host's own rules before the model, and again about what the model rewrote.
    #[must_use]
    pub fn obeying(
        mut self,
        policy: impl Fn(&str, &Value) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Asks no model in a run in which that is not worth it.
    #[must_use]
    pub fn expecting(mut self, expected: Expected) -> Self {
        self.expected = expected;
        self
    }

    /// Makes tools of the agent known, besides those that are. Once some are, a call of any other is
    /// refused without asking.
    pub fn knows<T: Tool>(&self, tools: &[T]) {
        let mut kit = self.kit.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = kit.told.clone();
        let mut looking = kit.looking.clone();
        for tool in tools {
            let tool_told = told(tool);
            all.retain(|other| other.name != tool_told.name);
            looking.remove(&tool_told.name);
            if tool.read_only() {
                looking.insert(tool_told.name.clone());
            }
            all.push(tool_told);
        }
        *kit = Arc::new(Kit {
            tools: Some(ToolsPreparedForVeto::new(&all)),
            told: all,
            looking,
        });
    }

    /// What is wrong with schemas of known tools against which arguments cannot be laid.
    pub fn doubts(&self) -> Vec<String> {
        let kit = self.kit();
        let tools = kit.tools.iter();
        tools
            .flat_map(ToolsPreparedForVeto::unusable_tool_schema_errors)
            .map(str::to_owned)
            .collect()
    }

    /// Judges one call. Never fails: what nobody could judge is [`VerifierVerdict::Unjudged`].
    pub fn check<'a>(
        &'a self,
        goal: &'a str,
        tool_name: &'a str,
        tool_args: &'a Value,
        recent_history: &'a [ChatMessage],
    ) -> impl Future<Output = PreToolDecision> + Send + 'a {
        let call = Call {
            goal,
            tool: tool_name,
            arguments: tool_args,
            history: recent_history,
        };
        self.judge(call, None)
    }

    /// What it did in this run.
    pub fn stats(&self) -> VerifierStats {
        self.book.stats()
    }

    /// Begins the next run: counters, caps and memory of calls are new, also for tools that were wrapped
    /// before.
    pub fn reset(&self) {
        self.book.begin();
    }

    fn kit(&self) -> Arc<Kit> {
        self.kit
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The one place where a call is decided, and counted.
    pub(super) async fn judge(&self, call: Call<'_>, own: Option<&Own>) -> PreToolDecision {
        let run = self.book.run();
        let decision = match self.decide(&run, &call, own) {
            ControlFlow::Break(decision) => decision,
            ControlFlow::Continue(asked) => {
                let reply = self.model.ask_model(&asked.asking.request).await;
                self.conclude(&run, &call, own, asked, reply)
            }
        };
        lock(&run).stats.decided(&decision);
        decision
    }

    /// As far as it goes without the model; else what the model is to be asked.
    fn decide(
        &self,
        run: &Mutex<Run>,
        call: &Call<'_>,
        own: Option<&Own>,
    ) -> ControlFlow<PreToolDecision, Asked> {
        if !self.config.veto_enabled {
            return ControlFlow::Break(PreToolDecision::unjudged(Unjudged::Disabled));
        }
        let kit = self.kit();
        let tools = kit.tools.as_ref();
        let known = kit.known(call.tool, own);
        if let Err(misfit) = check(tools, known, call) {
            let why = misfit.to_string();
            return ControlFlow::Break(PreToolDecision::refused(why, Basis::Misfit(misfit)));
        }
        if let Some(why) = self.forbidden(call.tool, call.arguments) {
            return ControlFlow::Break(PreToolDecision::refused(why, Basis::Policy));
        }
        let looks = own.is_some_and(|own| own.looks) || kit.looking.contains(call.tool);
        if self.config.scope == Scope::Risky && looks {
            return ControlFlow::Break(PreToolDecision::unjudged(Unjudged::OutOfScope));
        }
        let one = tools.is_some_and(|tools| tools.len() == 1);
        if let Some(why) = self
            .expected
            .not_worth()
            .or(one.then_some(NotWorth::OneTool))
        {
            return ControlFlow::Break(PreToolDecision::unjudged(Unjudged::NotWorth(why)));
        }
        let arguments = canonical(call.arguments);
        let shape = {
            let mut run = lock(run);
            let shape = run.shapes.shape(call.goal, call.tool, arguments);
            if let Some(said) = run.shapes.get(&shape) {
                return ControlFlow::Break(PreToolDecision {
                    cached: true,
                    ..said.clone()
                });
            }
            let cap = self.config.max_pretool_calls_per_run;
            if run.stats.pretool_asked >= cap {
                return ControlFlow::Break(PreToolDecision::unjudged(Unjudged::CapSpent { cap }));
            }
            run.stats.pretool_asked += 1;
            shape
        };
        let planned = ToolCallForVeto {
            goal: call.goal,
            tool: call.tool,
            arguments: shape.arguments(),
            history: call.history,
        };
        ControlFlow::Continue(Asked {
            asking: veto::build_veto_question_for_call(tools, known, planned),
            shape,
            kit,
        })
    }

    fn conclude(
        &self,
        run: &Mutex<Run>,
        call: &Call<'_>,
        own: Option<&Own>,
        asked: Asked,
        reply: Result<ModelReply, ModelError>,
    ) -> PreToolDecision {
        let heard =
            veto::veto_opinion_from_reply(&asked.asking, asked.kit.known(call.tool, own), reply);
        let decision = match heard.result {
            Ok(opinion) => self.weighed(call.tool, opinion),
            Err(silent) => PreToolDecision::unjudged(Unjudged::Silent(silent)),
        };
        let mut run = lock(run);
        run.stats.used(heard.usage);
        // What was not judged may be when it is asked again.
        if decision.verdict != VerifierVerdict::Unjudged {
            run.shapes.insert(asked.shape, decision.clone());
        }
        decision
    }

    fn forbidden(&self, tool: &str, arguments: &Value) -> Option<String> {
        self.policy
            .as_ref()
            .and_then(|policy| policy(tool, arguments))
    }

    fn weighed(&self, tool: &str, opinion: ModelOpinionOnToolCall) -> PreToolDecision {
        let stands = opinion.veto_meets_confidence(self.config.veto_min_confidence);
        let ModelOpinionOnToolCall {
            verdict,
            reason,
            confidence,
        } = opinion;
        let (verdict, new_args) = match verdict {
            ToolCallVetoVerdict::Allow => (VerifierVerdict::Allow, None),
            ToolCallVetoVerdict::Veto => (VerifierVerdict::Veto, None),
            ToolCallVetoVerdict::Rewrite(arguments) => (VerifierVerdict::Rewrite, Some(arguments)),
        };
        let said = PreToolDecision {
            verdict,
            reason,
            new_args,
            confidence,
            basis: Basis::Model,
            cached: false,
        };
        if !stands {
            return PreToolDecision {
                verdict: VerifierVerdict::Allow,
                new_args: None,
                basis: Basis::TooUnsure(verdict),
                ..said
            };
        }
        let Some(arguments) = said.new_args else {
            return said;
        };
        // Its schema was asked already; the host's rules are asked like for any call.
        let arguments = Value::Object(arguments);
        if let Some(why) = self.forbidden(tool, &arguments) {
            return PreToolDecision::refused(format!("as rewritten: {why}"), Basis::Policy);
        }
        match arguments {
            Value::Object(arguments) => PreToolDecision {
                new_args: Some(arguments),
                ..said
            },
            _ => PreToolDecision::unjudged(Unjudged::Silent(UnusableModelAnswer::NoArguments)),
        }
    }
}

/// What can be said without a model.
fn check(
    tools: Option<&ToolsPreparedForVeto>,
    known: Option<&ToolWithCompiledSchema>,
    call: &Call<'_>,
) -> Result<(), InvalidToolCallError> {
    match (known, tools) {
        (Some(known), _) => known.check_call_arguments(call.tool, call.arguments),
        (None, Some(tools)) => tools.check_tool_call_schema(call.tool, call.arguments),
        (None, None) => Ok(()),
    }
}
