//! What the rules of a kind are ([`rules`]), what is known of it ([`info`], [`lifecycle`], [`versions`]), and the small
//! rules over a field that many kinds are made of. It knows no kind but for a pod's spec, which many kinds hold. The kinds
//! themselves are in `kinds`. Pure: no I/O, no clock.

pub mod address_warnings;
pub mod addresses;
pub mod conditions;
pub mod field_rules;
pub mod gated;
pub mod go_json;
pub mod groups;
pub mod info;
pub mod internal_json;
mod internal_layout;
pub mod label_selector;
pub mod lifecycle;
pub mod metadata;
pub mod object_name;
pub mod other_form;
pub mod pod_containers;
mod privileges;
pub mod rules;
pub mod signers;
pub mod strategy;
pub mod table;
pub mod versions;
