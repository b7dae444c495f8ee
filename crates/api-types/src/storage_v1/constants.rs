//! Well-known names and the values of string types.

/// Values of `VolumeBindingMode`.
pub mod volume_binding_mode {
    values! { IMMEDIATE = "Immediate", WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer" }
}

/// Values of `FSGroupPolicy`.
pub mod fs_group_policy {
    values! { READ_WRITE_ONCE_WITH_FS_TYPE = "ReadWriteOnceWithFSType", FILE = "File", NONE = "None" }
}

/// Values of `VolumeLifecycleMode`.
pub mod volume_lifecycle_mode {
    values! { PERSISTENT = "Persistent", EPHEMERAL = "Ephemeral" }
}
