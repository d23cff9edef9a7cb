"""Plan the decoder of a key or a value. The plan is picklable, and each task creates its decoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacore.spark.typed.options import STRUCTURED, SideOptions

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
        given = self.options.given
        if self.options.format == "json":
            from kafkacore.decode.json import json_decoder, json_options

            return json_decoder(self.fields, json_options(given))
        if self.options.format == "avro":
            from kafkacore.decode.avro import avro_decoder, avro_options

            return avro_decoder(self.fields, avro_options(self.options.resolved(), self.options.side))
        from kafkacore.decode.scalars import scalar_decoder

        return scalar_decoder(self.options.format)
