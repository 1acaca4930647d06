//! Tests over all adapters: one binary, one subject a file.

#![expect(
    clippy::disallowed_methods,
    reason = "recorded files lie on disk; the crate itself never reads them"
)]

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod decisions;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod law_11;
#[cfg(test)]
mod reads;
#[cfg(test)]
mod renders;
