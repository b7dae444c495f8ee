//! Each cipher against vectors of others: NIST SP 800-38A and 38D, NaCl's `secretbox` test, and `openssl enc`.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

struct Vector {
    algorithm: &'static Algorithm,
    key: &'static str,
    place: &'static str,
    plain: &'static str,
    stored: &'static str,
}

/// 16 bytes, the first block of most examples.
const BLOCK: &str = "6bc1bee22e409f96e93d7e117393172a";
const SECRET: &str = "6b387320736563726574";

const VECTORS: &[Vector] = &[
    Vector {
        algorithm: &AES_CBC,
        key: "2b7e151628aed2a6abf7158809cf4f3c",
        place: "",
        plain: BLOCK,
        stored: "000102030405060708090a0b0c0d0e0f 7649abac8119b246cee98e9b12e9197d 8964e0b149c10b7b682e6e39aaeb731c",
    },
    Vector {
        algorithm: &AES_CBC,
        key: "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b",
        place: "",
        plain: SECRET,
        stored: "000102030405060708090a0b0c0d0e0f be66f8d8704064e6992192f71c0d36ae",
    },
    Vector {
        algorithm: &AES_CBC,
        key: "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
        place: "",
        plain: SECRET,
        stored: "000102030405060708090a0b0c0d0e0f d0088465ec079f618ce2fa99a768ce6b",
    },
    Vector {
        algorithm: &AES_GCM,
        key: "feffe9928665731c6d6a8f9467308308",
        place: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        plain: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72 \
                1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        stored: "cafebabefacedbaddecaf888 \
                 42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e \
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091 5bc94fbc3221a5db94fae95ae7121a47",
    },
    Vector {
        algorithm: &AES_GCM,
        key: "feffe9928665731c6d6a8f9467308308feffe9928665731c",
        place: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        plain: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72 \
                1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        stored: "cafebabefacedbaddecaf888 \
                 3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c \
                 7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710 2519498e80f1478f37ba55bd6d27618c",
    },
    Vector {
        algorithm: &AES_GCM,
        key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
        place: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
        plain: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72 \
                1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
        stored: "cafebabefacedbaddecaf888 \
                 522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa \
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662 76fc6ece0f4e1768cddf8853bb2d551b",
    },
    Vector {
        algorithm: &SECRETBOX,
        key: "1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389",
        place: "",
        plain: "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffc \
                e5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb31 \
                0e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde \
                048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f93776384864 5e0705",
        stored: "69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37 \
                 f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce \
                 48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c972 \
                 71d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae \
                 90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b3 \
                 7973f622a43d14a6599b1f654cb45a74e355a5",
    },
];

#[test]
fn what_others_encrypted_is_read() {
    for vector in VECTORS {
        let cipher = (vector.algorithm.with_key)(&bytes(vector.key)).unwrap();
        let (place, plain) = (bytes(vector.place), bytes(vector.plain));
        assert_eq!(cipher.open(&place, &bytes(vector.stored)).as_ref(), Ok(&plain), "{}", vector.algorithm.prefix);
        let [one, two] = [(); 2].map(|()| cipher.seal(&place, &plain).unwrap());
        assert_ne!(one, two, "chance is in it");
        assert_eq!(one.len(), bytes(vector.stored).len());
        assert_eq!(cipher.open(&place, &two), Ok(plain));
    }
}

#[test]
fn what_was_changed_cut_or_moved_is_refused() {
    for vector in VECTORS {
        let name = vector.algorithm.prefix;
        let cipher = (vector.algorithm.with_key)(&bytes(vector.key)).unwrap();
        let (place, stored) = (bytes(vector.place), bytes(vector.stored));
        let plain = cipher.open(&place, &stored).unwrap();
        for length in 0..stored.len() {
            let read = cipher.open(&place, &stored[..length]);
            assert_ne!(read.as_ref(), Ok(&plain), "{name} {length}");
            assert!(length % 16 == 0 || read.is_err(), "{name} {length}");
        }
        let mut changed = stored.clone();
        *changed.last_mut().unwrap() ^= 1;
        assert_ne!(cipher.open(&place, &changed).as_ref(), Ok(&plain), "{name}");
        let is_bound = vector.algorithm.prefix == AES_GCM.prefix;
        assert_eq!(cipher.open(b"elsewhere", &stored).is_err(), is_bound, "{name}");
    }
    let cbc = (AES_CBC.with_key)(&[1; 32]).unwrap();
    assert_eq!(cbc.open(b"", &[0; 15]).unwrap_err(), CipherError::TooShort);
    assert_eq!(cbc.open(b"", &[0; 16]).unwrap_err().to_string(), "the stored data is empty");
    assert_eq!(cbc.open(b"", &[0; 17]).unwrap_err().to_string(), "the stored data is not a multiple of the block size");
}
