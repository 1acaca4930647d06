//! Asks a second model beside an agent, for callers that are not asynchronous. The config names the
//! model. A problem that keeps it from answering is its result, not an error.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use checkrein_models::{ModelError, ModelRequestLimits, RemoteModel, block_on_unless_cancelled};

use crate::progress::{self, AgentStepToRate, ParsedProgressRating};
use crate::reviewer::{ModelQuestionOutcome, UnusableModelAnswer};
use crate::veto::{self, ModelOpinionOnToolCall, ToolCallForVeto};

/// The model to ask, and how long to wait for it.
#[derive(Clone, Copy)]
pub struct SecondModelReviewer<'a> {
    /// `provider/model`.
    pub model: &'a str,
    /// The environment in which keys and addresses are looked up.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// The longest wait.
    pub limit: Duration,
    /// Set when the answer is not wanted any more.
    pub cancelled: &'a AtomicBool,
}

impl SecondModelReviewer<'_> {
    /// Asks whether this call should run.
    pub fn ask_model_to_review_tool_call(
        self,
        call: ToolCallForVeto<'_>,
    ) -> ModelQuestionOutcome<ModelOpinionOnToolCall> {
        match self.build_remote_model() {
            Ok(model) => {
                self.wait_for_model_review(veto::ask_model_about_call(&model, None, None, call))
            }
            Err(error) => review_with_model_error(error),
        }
    }

    /// Asks whether this step led anywhere.
    pub fn rate_step(
        self,
        step: AgentStepToRate<'_>,
    ) -> ModelQuestionOutcome<ParsedProgressRating> {
        match self.build_remote_model() {
            Ok(model) => self.wait_for_model_review(progress::ask_model_to_rate_step(&model, step)),
            Err(error) => review_with_model_error(error),
        }
    }

    fn build_remote_model(self) -> Result<RemoteModel, ModelError> {
        let limits = ModelRequestLimits {
            total_timeout: self.limit,
            // The agent waits meanwhile, so there is one retry only.
            tries: 2,
            ..ModelRequestLimits::default()
        };
        RemoteModel::new(self.model, self.environment, limits)
    }

    fn wait_for_model_review<T: Send>(
        self,
        asking: impl Future<Output = ModelQuestionOutcome<T>> + Send,
    ) -> ModelQuestionOutcome<T> {
        match block_on_unless_cancelled(self.cancelled, async { Ok(asking.await) }) {
            Some(Ok(asked)) => asked,
            Some(Err(error)) => review_with_model_error(error),
            None => review_with_model_error(ModelError::NoExecutor {
                what: "it was called off".to_owned(),
            }),
        }
    }
}

fn review_with_model_error<T>(error: ModelError) -> ModelQuestionOutcome<T> {
    ModelQuestionOutcome {
        result: Err(UnusableModelAnswer::Model(error)),
        usage: None,
    }
}
