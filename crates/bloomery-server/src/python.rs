//! The module that the control plane imports: `bloomery_server`.
