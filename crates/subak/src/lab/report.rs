//! `subak lab report`: a result in another form.

use std::path::PathBuf;

use clap::Args;

use super::result;
use crate::cli::WRONG;
use crate::files;

pub(crate) const EXAMPLES: &str = "\
RUN is a directory that a command of the laboratory has written, its name in
lab-results, or the report.json in it. Without an option it prints the report
for a terminal.

Examples:
  subak lab report slow-endpoint
  subak lab report slow-endpoint --html slow.html
  subak lab report results/mine/report.json --markdown -";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Which result
    #[arg(value_name = "RUN")]
    run: String,
    /// Write one HTML file; - is standard output
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Shows the result; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    let report = match result::report(&arguments.run) {
        Ok(report) => report,
        Err(message) => {
            files::tell(&format!("error: {message}\n"));
            return WRONG;
        }
    };
    let put = |path: &PathBuf, text: String| match path.as_os_str() == "-" {
        true => files::print(&text),
        false => std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display())),
    };
    let mut done = Ok(());
    if let Some(path) = &arguments.html {
        done = done.and_then(|()| put(path, report.html()));
    }
    if let Some(path) = &arguments.markdown {
        done = done.and_then(|()| put(path, report.markdown()));
    }
    if arguments.json {
        done = done.and_then(|()| files::print(&report.json()));
    } else if arguments.html.is_none() && arguments.markdown.is_none() {
        done = files::print(&report.text_within(files::columns()));
    }
    files::told(done)
}
