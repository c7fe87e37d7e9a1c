//! The page of a story: one self-contained HTML file.

use serde_json::json;
use treering_sim::report::html::escape;
use treering_specs::check::configs::BoundedModel;
use treering_specs::check::lanes::Story;

/// The page without its data.
const PAGE: &str = include_str!("page.html");

/// Renders the page. The same story always gives the same bytes.
pub(super) fn html(story: &Story, model: &BoundedModel, finding: Option<&str>) -> String {
    let config = std::fs::read_to_string(&model.config.path).unwrap_or_default();
    // The comment at the beginning says what the model is for, behind the line for TLC.
    let about: Vec<&str> = (config.lines())
        .map_while(|line| line.strip_prefix("\\* "))
        .filter(|line| !line.starts_with("TLC must find"))
        .collect();
    let data = json!({
        "story": story,
        "about": about.join(" "),
        "finding": finding,
    });
    // `</script>` in a string would end the script.
    let data = data.to_string().replace("</", "<\\/");
    let title = format!("{} {}", story.spec, story.model);
    PAGE.replace("@TITLE@", &escape(&title))
        .replacen("@DATA@", &data, 1)
}
