//! The cloud-controller-manager framework and its fake provider.
