//! The data plane of the filter service: a store of named filters, its log, a RESP listener. No Python in a request.
//!
//! Read the rooms from the bottom up; arrows run one way only:
//!
//! | room | holds | may use |
//! |---|---|---|
//! | [`fault`] | what can be refused, and what it is called on the wire | nothing |
//! | [`limits`] | caps on what a client may ask for | nothing |
//! | [`kind`] | any structure of the registry behind one trait | fault |
//! | [`log`] | what was acknowledged, on disk: segments, group commit | fault |
//! | [`store`] | named filters: catalogue, operations, checkpoints, replay | fault, limits, kind, log |
//! | [`resp`] | RESP2 and RESP3: parser, replies, commands, connections, listener | all of the above |
//! | `python` | the module that the control plane imports | all of the above |

pub mod fault;
pub mod kind;
pub mod limits;
pub mod log;
#[cfg(feature = "python")]
mod python;
pub mod resp;
pub mod store;
