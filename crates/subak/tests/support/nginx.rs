//! nginx as an endpoint: another program's TLS and PROXY protocol.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{fresh_directory, wait_until};

/// A running nginx. Killed when dropped.
pub(crate) struct Nginx {
    child: Child,
    directory: PathBuf,
}

impl Nginx {
    /// Serves these servers (`server { … }`), of which one listens at `address`. None, said loudly, where
    /// there is no nginx. Files of `directory` can be named without their path.
    pub(crate) fn start(directory: &Path, servers: &str, address: &str) -> Option<Nginx> {
        let own = fresh_directory();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {}/{kind};\n", own.display()))
            .concat();
        let text = format!(
            "daemon off;\nmaster_process off;\nerror_log stderr;\npid {}/pid;\nevents {{ }}\n\
             http {{\naccess_log off;\ndefault_type text/plain;\n{temporary}{servers}}}\n",
            own.display()
        );
        // Files are looked for beside the configuration.
        let file = directory.join("nginx.conf");
        std::fs::write(&file, text).expect("write");
        let started = Command::new("nginx")
            .arg("-p")
            .arg(&own)
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match started {
            Ok(child) => child,
            Err(error) => {
                eprintln!("SKIPPED: what is tried with nginx: {error}");
                let _ = std::fs::remove_dir_all(&own);
                return None;
            }
        };
        let nginx = Nginx { child, directory: own };
        wait_until("nginx listens", || TcpStream::connect(address).is_ok());
        Some(nginx)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
