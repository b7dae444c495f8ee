//! A KMS plug-in for tests, as a process of its own, with keys and AES key wrap of its own (RFC 5649). It does what a
//! file says, which it reads at each call: which key it has now, and what it does wrong.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use aws_lc_rs::digest;
use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrapPadded as _};
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

use crate::kms::{v1beta1, v2};

/// Where a process finds the socket to serve.
const SOCKET: &str = "COXSWAIN_TEST_KMS_SOCKET";
/// The annotation that the plug-in wants back.
const ANNOTATION: &str = "key.kms.example";
/// How much longer key wrap makes a key, at most.
const WRAP_BYTES: usize = 15;

/// How long a process may take to serve.
const START_LIMIT: Duration = Duration::from_secs(20);

/// What the plug-in does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It does not answer.
    Hang,
    /// It says that it is not well.
    Unwell,
    /// It answers that it may not.
    Refuse,
    /// It encrypts with another key than it says.
    OtherKey,
    /// The name of its key is empty.
    NoKeyId,
    /// The name of its key is too long.
    LongKeyId,
    /// It names another version of the interface.
    OtherVersion,
    /// What it encrypts is too long.
    LongCiphertext,
    /// Its annotations are too long.
    LongAnnotations,
    /// The name of an annotation is no domain.
    BadAnnotation,
    /// What it decrypts is something else.
    Garbage,
    /// What it decrypts is cut short.
    Short,
}

/// All faults, with their names in the file.
const FAULTS: [(&str, Fault); 13] = [
    ("none", Fault::None),
    ("hang", Fault::Hang),
    ("unwell", Fault::Unwell),
    ("refuse", Fault::Refuse),
    ("other-key", Fault::OtherKey),
    ("no-key-id", Fault::NoKeyId),
    ("long-key-id", Fault::LongKeyId),
    ("other-version", Fault::OtherVersion),
    ("long-ciphertext", Fault::LongCiphertext),
    ("long-annotations", Fault::LongAnnotations),
    ("bad-annotation", Fault::BadAnnotation),
    ("garbage", Fault::Garbage),
    ("short", Fault::Short),
];

/// A plug-in that runs; dropped, it is killed.
pub struct PluginProcess {
    child: Child,
    socket: PathBuf,
}

impl PluginProcess {
    /// Starts one at a socket: this test program once more, with only the test `serves`, which must call
    /// [`serve_if_asked`]. It has the key `k1`.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "a helper of tests, which has nothing to fake")]
    pub fn start(socket: impl Into<PathBuf>, serves: &str) -> Self {
        let socket = socket.into();
        // Of a process that was killed.
        let _ = std::fs::remove_file(&socket);
        let program = std::env::current_exe().expect("this program");
        let child = Command::new(program)
            .args(["--exact", serves, "--nocapture"])
            .env(SOCKET, &socket)
            .stdout(Stdio::null())
            .spawn()
            .expect("a plug-in");
        let own = Self { child, socket };
        own.behave("k1", Fault::None);
        own
    }

    /// Has it encrypt with a key from now on, and do something wrong.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn behave(&self, key_id: &str, fault: Fault) {
        let (name, _) = FAULTS.iter().find(|(_, own)| *own == fault).expect("it is listed");
        let (file, new) = (behaviour_file(&self.socket), self.socket.with_extension("new"));
        std::fs::write(&new, format!("{key_id} {name}")).expect("a file");
        std::fs::rename(new, file).expect("a file");
    }

    /// Waits until it serves.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn serves(&self) {
        let waiting = async {
            while tokio::net::UnixStream::connect(&self.socket).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(START_LIMIT, waiting).await.expect("the plug-in does not start");
    }

    /// Where it is, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket.display())
    }
}

impl Drop for PluginProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves where a [`PluginProcess`] asked this program to, until it is killed.
///
/// # Errors
/// When the socket cannot be made.
pub async fn serve_if_asked() -> io::Result<()> {
    let Some(socket) = std::env::var_os(SOCKET).map(PathBuf::from) else { return Ok(()) };
    let listener = UnixListener::bind(&socket)?;
    let own = Plugin { socket };
    tonic::transport::Server::builder()
        .add_service(v2::key_management_service_server::KeyManagementServiceServer::new(own.clone()))
        .add_service(v1beta1::key_management_service_server::KeyManagementServiceServer::new(own))
        .serve_with_incoming(UnixListenerStream::new(listener))
        .await
        .map_err(io::Error::other)
}

/// The key that the plug-in wraps keys with under a name.
#[must_use]
pub fn wrapping_key(key_id: &str) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest::digest(&digest::SHA256, key_id.as_bytes()).as_ref());
    key
}

fn behaviour_file(socket: &Path) -> PathBuf {
    socket.with_extension("behaviour")
}

#[derive(Clone)]
struct Plugin {
    socket: PathBuf,
}

impl Plugin {
    /// The key and the fault of now.
    async fn now(&self) -> Result<(String, Fault), Status> {
        let text = std::fs::read_to_string(behaviour_file(&self.socket))?;
        let (key_id, fault) = text.split_once(' ').ok_or_else(|| Status::internal("no behaviour"))?;
        let fault = FAULTS.iter().find(|(name, _)| *name == fault).map_or(Fault::None, |(_, fault)| *fault);
        match fault {
            Fault::Hang => std::future::pending().await,
            Fault::Refuse => Err(Status::permission_denied("not for you")),
            _ => Ok((key_id.to_owned(), fault)),
        }
    }
}

fn wrap(key_id: &str, plain: &[u8]) -> Result<Vec<u8>, Status> {
    let kek = AesKek::new(&AES_256, &wrapping_key(key_id)).map_err(|_| Status::internal("no key"))?;
    let mut wrapped = vec![0; plain.len() + WRAP_BYTES];
    kek.wrap_with_padding(plain, &mut wrapped).map(|own| own.to_vec()).map_err(|_| Status::internal("not wrapped"))
}

fn unwrap(key_id: &str, wrapped: &[u8]) -> Result<Vec<u8>, Status> {
    let kek = AesKek::new(&AES_256, &wrapping_key(key_id)).map_err(|_| Status::internal("no key"))?;
    let mut plain = vec![0; wrapped.len()];
    let unwrapped = kek.unwrap_with_padding(wrapped, &mut plain);
    unwrapped.map(|own| own.to_vec()).map_err(|_| Status::invalid_argument("this key did not wrap it"))
}

fn lie(fault: Fault, plain: Vec<u8>) -> Vec<u8> {
    match fault {
        Fault::Garbage => plain.iter().map(|byte| byte ^ 1).collect(),
        Fault::Short => plain.into_iter().take(5).collect(),
        _ => plain,
    }
}

#[tonic::async_trait]
impl v2::key_management_service_server::KeyManagementService for Plugin {
    async fn status(&self, _: Request<v2::StatusRequest>) -> Result<Response<v2::StatusResponse>, Status> {
        let (key_id, fault) = self.now().await?;
        Ok(Response::new(v2::StatusResponse {
            version: if fault == Fault::OtherVersion { "v9" } else { "v2" }.to_owned(),
            healthz: if fault == Fault::Unwell { "out of paper" } else { "ok" }.to_owned(),
            key_id: match fault {
                Fault::NoKeyId => String::new(),
                Fault::LongKeyId => "k".repeat(1025),
                _ => key_id,
            },
        }))
    }

    async fn encrypt(&self, request: Request<v2::EncryptRequest>) -> Result<Response<v2::EncryptResponse>, Status> {
        let (mut key_id, fault) = self.now().await?;
        if fault == Fault::OtherKey {
            key_id.push('x');
        }
        let mut ciphertext = wrap(&key_id, &request.get_ref().plaintext)?;
        if fault == Fault::LongCiphertext {
            ciphertext.resize(1025, 0);
        }
        let mut annotations = HashMap::from([(ANNOTATION.to_owned(), key_id.clone().into_bytes())]);
        match fault {
            Fault::LongAnnotations => drop(annotations.insert("long.example".to_owned(), vec![0; 32 * 1024])),
            Fault::BadAnnotation => drop(annotations.insert("bad".to_owned(), Vec::new())),
            _ => {}
        }
        Ok(Response::new(v2::EncryptResponse { ciphertext, key_id, annotations }))
    }

    async fn decrypt(&self, request: Request<v2::DecryptRequest>) -> Result<Response<v2::DecryptResponse>, Status> {
        let (_, fault) = self.now().await?;
        let request = request.into_inner();
        if request.annotations.get(ANNOTATION).map(Vec::as_slice) != Some(request.key_id.as_bytes()) {
            return Err(Status::invalid_argument("the annotation is not the one that was given"));
        }
        let plaintext = lie(fault, unwrap(&request.key_id, &request.ciphertext)?);
        Ok(Response::new(v2::DecryptResponse { plaintext }))
    }
}

/// Version 1 knows no names of keys: there is one.
const ONLY_KEY: &str = "v1";

#[tonic::async_trait]
impl v1beta1::key_management_service_server::KeyManagementService for Plugin {
    async fn version(&self, _: Request<v1beta1::VersionRequest>) -> Result<Response<v1beta1::VersionResponse>, Status> {
        let answer = v1beta1::VersionResponse { version: "v1beta1".to_owned(), ..Default::default() };
        Ok(Response::new(answer))
    }

    async fn encrypt(
        &self,
        request: Request<v1beta1::EncryptRequest>,
    ) -> Result<Response<v1beta1::EncryptResponse>, Status> {
        self.now().await?;
        let cipher = wrap(ONLY_KEY, &request.get_ref().plain)?;
        Ok(Response::new(v1beta1::EncryptResponse { cipher }))
    }

    async fn decrypt(
        &self,
        request: Request<v1beta1::DecryptRequest>,
    ) -> Result<Response<v1beta1::DecryptResponse>, Status> {
        let (_, fault) = self.now().await?;
        let plain = lie(fault, unwrap(ONLY_KEY, &request.get_ref().cipher)?);
        Ok(Response::new(v1beta1::DecryptResponse { plain }))
    }
}
