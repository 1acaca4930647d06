//! What doctor says: one finding is what, where, what follows from it, and the mend.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    Warning,
    Fault,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Finding {
    /// The agent, or `repo`.
    pub(super) about: &'static str,
    /// A stable word for what was looked at.
    pub(super) check: &'static str,
    pub(super) status: Status,
    pub(super) what: String,
    /// `file:line`, or a file.
    #[serde(rename = "where")]
    pub(super) place: Option<String>,
    /// What follows from it.
    #[serde(rename = "so")]
    pub(super) so: Option<String>,
    /// The command to run or the line to write.
    #[serde(rename = "mend")]
    pub(super) mend: Option<String>,
}

impl Finding {
    pub(super) fn ok(about: &'static str, check: &'static str, what: impl Into<String>) -> Self {
        Self {
            about,
            check,
            status: Status::Ok,
            what: what.into(),
            place: None,
            so: None,
            mend: None,
        }
    }

    pub(super) fn warning(
        about: &'static str,
        check: &'static str,
        what: impl Into<String>,
    ) -> Self {
        Self {
            status: Status::Warning,
            ..Self::ok(about, check, what)
        }
    }

    pub(super) fn fault(about: &'static str, check: &'static str, what: impl Into<String>) -> Self {
        Self {
            status: Status::Fault,
            ..Self::ok(about, check, what)
        }
    }

    pub(super) fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    pub(super) fn so(mut self, follows: impl Into<String>) -> Self {
        self.so = Some(follows.into());
        self
    }

    pub(super) fn mend(mut self, mend: impl Into<String>) -> Self {
        self.mend = Some(mend.into());
        self
    }
}
