//! The log against a model, against damaged files, crashes, failing disks and real threads.

mod control;
mod crash;
mod damage;
mod faults;
mod model;
mod support;
mod threads;
