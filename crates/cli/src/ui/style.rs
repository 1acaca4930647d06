//! Formats colours, times and sizes. Colours appear on a terminal only; `NO_COLOR`, `CLICOLOR` and
//! `CLICOLOR_FORCE` are honoured.

use std::io::IsTerminal as _;

use checkrein_core::ids::UnixMillis;
use checkrein_core::transition::Reason;

/// How something is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextStyle {
    Good,
    Bad,
    Warn,
    Dim,
    Strong,
}

/// Where it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStream {
    Stdout,
    Stderr,
}

impl TextStyle {
    /// Returns its ANSI number.
    pub(super) fn ansi_code(self) -> &'static str {
        match self {
            TextStyle::Good => "32",
            TextStyle::Bad => "31",
            TextStyle::Warn => "33",
            TextStyle::Dim => "2",
            TextStyle::Strong => "1",
        }
    }
}

impl OutputStream {
    /// Returns whether this is a terminal that wants colours, or something else that is forced to
    /// have them.
    pub(super) fn has_colours(self) -> bool {
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is = |name, word| std::env::var_os(name).is_some_and(|value| value == word);
        // `NO_COLOR` wins over all others, as no-color.org has it.
        if is_set("NO_COLOR") {
            return false;
        }
        if is_set("CLICOLOR_FORCE") && !is("CLICOLOR_FORCE", "0") {
            return true;
        }
        self.is_connected_to_terminal() && !is("TERM", "dumb") && !is("CLICOLOR", "0")
    }

    fn is_connected_to_terminal(self) -> bool {
        match self {
            OutputStream::Stdout => std::io::stdout().is_terminal(),
            OutputStream::Stderr => std::io::stderr().is_terminal(),
        }
    }

    /// Returns the columns of the terminal, if it is one and reports them.
    pub(super) fn terminal_columns(self) -> Option<usize> {
        let terminal = match self {
            OutputStream::Stdout => console::Term::stdout(),
            OutputStream::Stderr => console::Term::stderr(),
        };
        let (_, columns) = terminal.size_checked()?;
        self.is_connected_to_terminal()
            .then_some(usize::from(columns))
    }
}

/// Returns the paint of a reason.
pub(crate) fn reason_paint(reason: Reason) -> TextStyle {
    match reason {
        Reason::TaskComplete => TextStyle::Good,
        Reason::Unverified | Reason::AwaitingHuman | Reason::Abandoned | Reason::UserInterrupt => {
            TextStyle::Warn
        }
        Reason::Error
        | Reason::GaveUp
        | Reason::HardCap
        | Reason::DiminishingReturns
        | Reason::LoopDetected
        | Reason::VerifierFailedUnrecoverable
        | Reason::PermissionDenied
        | Reason::Truncated => TextStyle::Bad,
    }
}

/// `1.2 s`, `3 min 4 s`
pub(crate) fn format_duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{} h {} min", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// `1 stop`, `2 stops`
pub(crate) fn count_with_noun(number: impl Into<u64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// `12 KB`, `3.4 MB`
pub(crate) fn format_size(bytes: u64) -> String {
    match bytes {
        // Rounded up, so that a small file is not shown as 0 KB.
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => {
            format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
        }
        _ => format!(
            "{}.{} GB",
            bytes / 1_000_000_000,
            bytes % 1_000_000_000 / 100_000_000
        ),
    }
}

/// Formats a time of day in the person's time zone, with the date if it is not today's: `14:05`.
pub(crate) fn format_local_time_of_day(at: UnixMillis, now: UnixMillis) -> String {
    let zone = jiff::tz::TimeZone::system();
    let local = |time: UnixMillis| {
        let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
        jiff::Timestamp::from_millisecond(ms)
            .unwrap_or(jiff::Timestamp::MAX)
            .to_zoned(zone.clone())
    };
    let (at, now) = (local(at), local(now));
    let format = if at.date() == now.date() {
        "%H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    at.strftime(format).to_string()
}

/// Formats a time for a narrow column: today's time, or the day.
pub(crate) fn format_time_or_date(at: UnixMillis, now: UnixMillis) -> String {
    let clock = format_local_time_of_day(at, now);
    match clock.split_once(' ') {
        Some((day, _)) => day.to_owned(),
        None => clock,
    }
}
