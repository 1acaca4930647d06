//! Tests over all adapters: one binary, one subject a file.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests read recorded files and feed in floats; the crate itself does neither"
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
#[cfg(test)]
mod settings;
