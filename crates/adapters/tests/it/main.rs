//! Tests over all adapters: one binary, one subject a file.

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
