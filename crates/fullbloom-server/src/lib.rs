//! The data plane of the filter service: a store of named filters, its log, a RESP listener. No Python in a request.
//!
//! Read the modules from the bottom up; dependencies point one way:
//!
//! | module | holds | may use |
//! |---|---|---|
//! | [`blocking`] | waiting without blocking other connections | nothing |
//! | [`fault`] | why the service refuses, and the code that clients see | nothing |
//! | `fault_points` | places where tests inject faults | nothing |
//! | [`limits`] | caps on what a client may request | nothing |
//! | [`auth`] | tokens, grants, patterns of filter names | nothing |
//! | [`budget`] | the memory held for clients | fault |
//! | [`kind`] | any structure of the registry behind one trait | fault |
//! | [`log`] | acknowledged changes on disk: segments, group commit | fault, fault_points, budget |
//! | [`store`] | named filters: catalogue, operations, checkpoints, replay | fault, fault_points, limits, budget, blocking, kind, log |
//! | [`json`] | keys in JSON texts, hashed while they are read | fault, limits, kind |
//! | [`resp`] | RESP2 and RESP3: parser, replies, commands, connections, listener | all of the above |
//! | `python` | the module that the control plane imports | all of the above |

pub mod auth;
pub mod blocking;
pub mod budget;
pub mod fault;
mod fault_points;
pub mod json;
pub mod kind;
pub mod limits;
pub mod log;
#[cfg(feature = "python")]
mod python;
pub mod resp;
pub mod store;
