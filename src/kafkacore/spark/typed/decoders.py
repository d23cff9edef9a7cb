"""Plan the decoder of a key or a value. The plan is picklable, and each task creates its decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacore.decode.formats import STRUCTURED, new_decoder
from kafkacore.spark.typed.options import SideOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import Decoder


@dataclass(frozen=True)
class DecoderPlan:
    """Plan to decode the key or the value.

    Parameters
    ----------
    options:
        Options of the key or the value.
    fields:
        Fields to decode from a structured format. For a scalar format, a single field of any name.
    """

    options: SideOptions
    fields: pa.Schema

    @property
    def structured(self) -> bool:
        return self.options.format in STRUCTURED

    def decoder(self) -> Decoder:
        """Create a decoder.

        Raises
        ------
        KafkaConfigurationError
            A field has a type that the format does not support, or an option is invalid.
        """
        given = self.options.resolved() if self.options.format == "avro" else self.options.given
        return new_decoder(self.options.format, self.fields, given, self.options.side)
