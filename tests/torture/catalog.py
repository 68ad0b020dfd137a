"""All targets, by name."""

from tests.torture.arrays import ArrayTarget
from tests.torture.documents import CertificateTarget, ComposeTarget
from tests.torture.faults import FaultTarget
from tests.torture.owner_files import ConfigurationTarget, OtherTableTarget
from tests.torture.parquet import ParquetTarget, PyarrowTarget
from tests.torture.ratings import CompressedTarget, IdListTarget, RowTarget, TextTarget
from tests.torture.releases import ForgedTarget, ReleaseTarget, SignatureTarget
from tests.torture.run_folders import RunFolderTarget
from tests.torture.target import Target

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        *(TextTarget, RowTarget, CompressedTarget, ParquetTarget, PyarrowTarget, ArrayTarget),
        *(IdListTarget, OtherTableTarget, ConfigurationTarget),
        *(ReleaseTarget, ForgedTarget, SignatureTarget),
        *(CertificateTarget, ComposeTarget, RunFolderTarget, FaultTarget),
    )
}

INPUTS = 1000
"""Sum of the shares of all targets."""

FAULTS = FaultTarget.name
"""Target that lets system calls fail instead of mutating inputs."""
