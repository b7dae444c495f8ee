//! Well-known names and the values of string types.

/// Values of `VolumeBindingMode`.
pub mod volume_binding_mode {
    values! { IMMEDIATE = "Immediate", WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer" }
}

/// Values of `FSGroupPolicy`.
pub mod fs_group_policy {
    pub const READ_WRITE_ONCE_WITH_FS_TYPE: &str = "ReadWriteOnceWithFSType";
    pub const FILE: &str = "File";
    pub const NONE: &str = "None";
}

/// Values of `VolumeLifecycleMode`.
pub mod volume_lifecycle_mode {
    pub const PERSISTENT: &str = "Persistent";
    pub const EPHEMERAL: &str = "Ephemeral";
}
