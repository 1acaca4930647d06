//! A second model beside an agent, for who does not wait asynchronously: the config names it, and
//! what keeps it from answering is what it says.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use checkrein_models::{ModelError, ModelRequestLimits, RemoteModel, block_on_unless_cancelled};

use crate::progress::{self, Rating, Step};
use crate::veto::{self, Opinion, Planned};
use crate::witness::{Asked, Silent};

/// Whom to ask, and how long to wait.
#[derive(Clone, Copy)]
pub struct Second<'a> {
    /// `provider/model`.
    pub model: &'a str,
    /// Where keys and addresses are looked for.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// Longer it is not waited for.
    pub limit: Duration,
    /// Set when the answer is not wanted any more.
    pub cancelled: &'a AtomicBool,
}

impl Second<'_> {
    /// Should this call run?
    pub fn opinion(self, call: Planned<'_>) -> Asked<Opinion> {
        match self.open() {
            Ok(model) => self.wait(veto::ask(&model, None, None, call)),
            Err(error) => silent(error),
        }
    }

    /// Did this step lead anywhere?
    pub fn rating(self, step: Step<'_>) -> Asked<Rating> {
        match self.open() {
            Ok(model) => self.wait(progress::ask(&model, step)),
            Err(error) => silent(error),
        }
    }

    fn open(self) -> Result<RemoteModel, ModelError> {
        let limits = ModelRequestLimits {
            total_timeout: self.limit,
            // An agent waits for every word.
            tries: 2,
            ..ModelRequestLimits::default()
        };
        RemoteModel::new(self.model, self.environment, limits)
    }

    fn wait<T: Send>(self, asking: impl Future<Output = Asked<T>> + Send) -> Asked<T> {
        match block_on_unless_cancelled(self.cancelled, async { Ok(asking.await) }) {
            Some(Ok(asked)) => asked,
            Some(Err(error)) => silent(error),
            None => silent(ModelError::NoExecutor {
                what: "it was called off".to_owned(),
            }),
        }
    }
}

fn silent<T>(error: ModelError) -> Asked<T> {
    Asked {
        said: Err(Silent::Model(error)),
        usage: None,
    }
}
