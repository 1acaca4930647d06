//! What doctor reports: a finding says what, where, what follows from it, and what mends it.

use serde::Serialize;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DoctorFindingSeverity {
    Ok,
    Warning,
    Fault,
}

/// One thing that was inspected.
#[derive(Debug, Clone, Serialize)]
pub(super) struct DoctorFinding {
    /// The agent, or `repo`.
    pub(super) about: &'static str,
    /// A stable name of the inspection.
    pub(super) check: &'static str,
    pub(super) status: DoctorFindingSeverity,
    pub(super) what: String,
    /// `file:line`, or a file.
    #[serde(rename = "where")]
    pub(super) place: Option<String>,
    /// What follows from it.
    #[serde(rename = "so")]
    pub(super) consequence: Option<String>,
    /// The command to run or the line to write.
    #[serde(rename = "mend")]
    pub(super) fix: Option<String>,
}

impl DoctorFinding {
    pub(super) fn ok_finding(
        about: &'static str,
        check: &'static str,
        what: impl Into<String>,
    ) -> Self {
        Self {
            about,
            check,
            status: DoctorFindingSeverity::Ok,
            what: what.into(),
            place: None,
            consequence: None,
            fix: None,
        }
    }

    pub(super) fn warning_finding(
        about: &'static str,
        check: &'static str,
        what: impl Into<String>,
    ) -> Self {
        Self {
            status: DoctorFindingSeverity::Warning,
            ..Self::ok_finding(about, check, what)
        }
    }

    pub(super) fn new_doctor_fault_finding(
        about: &'static str,
        check: &'static str,
        what: impl Into<String>,
    ) -> Self {
        Self {
            status: DoctorFindingSeverity::Fault,
            ..Self::ok_finding(about, check, what)
        }
    }

    pub(super) fn with_finding_place(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    pub(super) fn with_finding_consequence(mut self, follows: impl Into<String>) -> Self {
        self.consequence = Some(follows.into());
        self
    }

    pub(super) fn with_fix(mut self, mend: impl Into<String>) -> Self {
        self.fix = Some(mend.into());
        self
    }
}
