//! Columns of every kind in every form against the values that they were made of.
#![forbid(unsafe_code)]

mod bytes;
mod choice;
mod compressed;
mod decode;
mod lent;
mod packed;
mod round_trip;
mod select;
mod support;
mod views;
