//! The data plane of the filter service: a store of named filters, its log, a RESP listener. No Python in a request.
//!
//! Read the rooms from the bottom up; arrows run one way only:
//!
//! | room | holds | may use |
//! |---|---|---|
//! | [`blocking`] | waiting without stopping others | nothing |
//! | [`fault`] | what can be refused, and what it is called on the wire | nothing |
//! | `fault_points` | places where tests have faults happen | nothing |
//! | [`limits`] | caps on what a client may ask for | nothing |
//! | [`budget`] | the bytes that are held for clients | fault |
//! | [`kind`] | any structure of the registry behind one trait | fault |
//! | [`log`] | what was acknowledged, on disk: segments, group commit | fault, fault_points |
//! | [`store`] | named filters: catalogue, operations, checkpoints, replay | fault, fault_points, limits, budget, blocking, kind, log |
//! | [`json`] | keys of JSON texts, hashed as they are read | fault, limits, kind |
//! | [`resp`] | RESP2 and RESP3: parser, replies, commands, connections, listener | all of the above |
//! | `python` | the module that the control plane imports | all of the above |

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
