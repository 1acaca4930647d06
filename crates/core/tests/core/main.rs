//! The core in a virtual world: stories as text, laws as properties, one golden log.
//! One test binary, so that the world is compiled once.

mod cascade;
mod golden;
mod laws;
mod random;
mod size;
mod story;
mod tasks;
mod tools;
mod world;
