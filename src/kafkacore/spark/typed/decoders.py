"""The decoder of a side, from its options and the fields that are wanted. Picklable; made anew in each task.

Does not know: Spark's schema, Kafka's own columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkacore.spark.typed.options import STRUCTURED, SideOptions

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkacore.decode.decoder import Decoder


@dataclass(frozen=True)
class DecoderPlan:
    """How one side is decoded.

    Parameters
    ----------
    options:
        What the side is.
    fields:
        The wanted fields of a structured format; one field, of any name, of a scalar.
    """

    options: SideOptions
    fields: pa.Schema

    @property
    def structured(self) -> bool:
        return self.options.format in STRUCTURED

    def decoder(self) -> Decoder:
        """A new decoder.

        Raises
        ------
        KafkaConfigurationError
            A field of a type that the format does not have; an option that does not fit.
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
