//! The structs of files have upstream's fields, in its order: what one kubelet writes, the other reads.

use api_machinery::reflect::StructType;

use crate::{credentialprovider_v1 as exchange, kubelet_config_v1 as v1, kubelet_config_v1beta1 as v1beta1};

/// What a struct is made of: names, and whether they are left out where they are empty.
fn of_table(table: &StructType) -> Vec<(String, bool)> {
    let fields = table.fields.iter().enumerate();
    fields.map(|(index, field)| (field.name.to_owned(), table.json_always & (1 << index) == 0)).collect()
}

/// The same as a table of facts has it.
fn of_facts(file: &str, name: &str) -> Vec<(String, bool)> {
    let facts = test_facts::facts(&format!("config/{file}.json"));
    let types = facts["types"].as_array().expect("types");
    let own = types.iter().find(|own| own["name"] == name).unwrap_or_else(|| panic!("{file}: {name}"));
    let fields = own["fields"].as_array().expect("fields").iter().filter(|field| field["json"].is_string());
    fields.map(|field| (field["json"].as_str().expect("a name").to_owned(), field["omitempty"] == true)).collect()
}

#[test]
fn files_have_upstreams_fields() {
    let providers = "CredentialProviderConfig";
    let requests = "CredentialProviderRequest";
    let former = ["KubeletConfiguration", "kubelet-image-pull-records"];
    for (files, table) in [
        (&[providers][..], v1::CredentialProviderConfig::STRUCT_TYPE),
        (&[providers], v1::CredentialProvider::STRUCT_TYPE),
        (&[providers, former[0], former[1]], v1::ExecEnvVar::STRUCT_TYPE),
        (&[providers], v1::ServiceAccountTokenAttributes::STRUCT_TYPE),
        (&former, v1beta1::CredentialProviderConfig::STRUCT_TYPE),
        (&former, v1beta1::CredentialProvider::STRUCT_TYPE),
        (&former, v1beta1::ImagePullIntent::STRUCT_TYPE),
        (&former, v1beta1::ImagePulledRecord::STRUCT_TYPE),
        (&former, v1beta1::ImagePullCredentials::STRUCT_TYPE),
        (&former, v1beta1::ImagePullSecret::STRUCT_TYPE),
        (&former, v1beta1::ImagePullServiceAccount::STRUCT_TYPE),
        (&[requests], exchange::CredentialProviderRequest::STRUCT_TYPE),
        (&[requests], exchange::CredentialProviderResponse::STRUCT_TYPE),
        (&[requests], exchange::AuthConfig::STRUCT_TYPE),
    ] {
        for file in files {
            assert_eq!(of_table(table), of_facts(file, table.name), "{file}: {}", table.name);
        }
    }
}
