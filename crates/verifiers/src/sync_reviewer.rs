//! A second model beside an agent, for who does not wait asynchronously: the config names it, and
//! what keeps it from answering is what it says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use checkrein_models::{ModelError, ModelRequestLimits, RemoteModel, block_on_unless_cancelled};

use crate::progress::{self, AgentStepToRate, ProgressRating};
use crate::reviewer::{ModelQuestionOutcome, UnusableModelAnswer};
use crate::veto::{self, ModelOpinionOnToolCall, ToolCallForVeto};

/// Whom to ask, and how long to wait.
#[derive(Clone, Copy)]
pub struct SecondModelReviewer<'a> {
    /// `provider/model`.
    pub model: &'a str,
    /// Where keys and addresses are looked for.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// Longer it is not waited for.
    pub limit: Duration,
    /// Set when the answer is not wanted any more.
    pub cancelled: &'a AtomicBool,
}

impl SecondModelReviewer<'_> {
    /// Should this call run?
    pub fn review_call(
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

    /// Did this step lead anywhere?
    pub fn rate_step(self, step: AgentStepToRate<'_>) -> ModelQuestionOutcome<ProgressRating> {
        match self.build_remote_model() {
            Ok(model) => self.wait_for_model_review(progress::rate_step(&model, step)),
            Err(error) => review_with_model_error(error),
        }
    }

    fn build_remote_model(self) -> Result<RemoteModel, ModelError> {
        let limits = ModelRequestLimits {
            total_timeout: self.limit,
            // An agent waits for every word.
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
