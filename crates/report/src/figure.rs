//! Numbers in JSON, those included that JSON has no word for: `"nan"`, `"inf"`, `"-inf"`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Figure {
    Finite(f64),
    Named(Named),
}

#[derive(Serialize, Deserialize)]
enum Named {
    #[serde(rename = "nan")]
    Nan,
    #[serde(rename = "inf")]
    Infinity,
    #[serde(rename = "-inf")]
    MinusInfinity,
}

impl From<f64> for Figure {
    fn from(value: f64) -> Figure {
        match value {
            value if value.is_finite() => Figure::Finite(value),
            value if value.is_nan() => Figure::Named(Named::Nan),
            value if value > 0.0 => Figure::Named(Named::Infinity),
            _ => Figure::Named(Named::MinusInfinity),
        }
    }
}

impl From<Figure> for f64 {
    fn from(figure: Figure) -> f64 {
        match figure {
            Figure::Finite(value) => value,
            Figure::Named(Named::Nan) => f64::NAN,
            Figure::Named(Named::Infinity) => f64::INFINITY,
            Figure::Named(Named::MinusInfinity) => f64::NEG_INFINITY,
        }
    }
}

pub(crate) fn serialize<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    Figure::from(*value).serialize(to)
}

pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    Figure::deserialize(from).map(f64::from)
}

/// The same where there may be none.
pub(crate) mod optional {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Figure;

    pub(crate) fn serialize<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
        value.map(Figure::from).serialize(to)
    }

    pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Option<f64>, D::Error> {
        Ok(Option::<Figure>::deserialize(from)?.map(f64::from))
    }
}
