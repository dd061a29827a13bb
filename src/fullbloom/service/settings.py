"""Settings: one typed object, from flags, environment (``FULLBLOOM_*``) and a TOML file, in this order."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from fullbloom.service.failures import StartError

_HIGHEST_PORT = 65535


def state_folder() -> Path:
    """Return the platform's folder for data of programs.

    >>> state_folder().name
    'fullbloom'
    """
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "fullbloom"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "fullbloom"
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "fullbloom"


def split_address(address: str) -> tuple[str, int]:
    """Split ``HOST:PORT``; an IPv6 host may be in brackets.

    >>> split_address("127.0.0.1:8080"), split_address("[::1]:0")
    (('127.0.0.1', 8080), ('::1', 0))
    """
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > _HIGHEST_PORT:
        raise ValueError(f"an address is HOST:PORT, got {address!r}")
    return host.strip("[]"), int(port)


def _validate_address(address: str) -> str:
    if address != "none":
        split_address(address)
    return address


Address = Annotated[str, AfterValidator(_validate_address)]


class Limits(BaseModel):
    """Limits of requests; every length that a client states is checked against one of them."""

    model_config = ConfigDict(extra="forbid")

    filter_bytes: int = Field(4 << 30, gt=0, description="bytes of one filter, growth included")
    total_bytes: int = Field(16 << 30, gt=0, description="bytes of all filters")
    filters: int = Field(1_000_000, gt=0, description="filters")
    memory_bytes: int = Field(
        0,
        ge=0,
        description="bytes held for clients beside the filters: requests, replies, copies; "
        "0: filter_bytes and 16 times request_bytes",
    )
    request_bytes: int = Field(64 << 20, gt=0, description="bytes of one request, unpacked")
    file_bytes: int = Field(1 << 30, gt=0, description="bytes of a filter that is restored by HTTP")
    batch_keys: int = Field(1_000_000, gt=0, description="keys of one request")
    key_bytes: int = Field(64 << 10, gt=0, description="bytes of one key")
    connections: int = Field(10_000, gt=0, description="connections to each port")
    requests: int = Field(256, gt=0, description="concurrent HTTP requests; others get 503")
    receive: float = Field(
        30.0, gt=0, description="seconds for a request to arrive and for its response to be received"
    )


class History(BaseModel):
    """Statistics: the interval of samples and how they are thinned with age; each span keeps its last one."""

    model_config = ConfigDict(extra="forbid")

    every: float = Field(60.0, gt=0, description="seconds between two samples")
    full: float = Field(86_400.0, ge=0, description="seconds for which every sample is kept")
    hourly: float = Field(
        30 * 86_400.0, ge=0, description="seconds for which one per hour is kept; then one per day"
    )


class Settings(BaseSettings):
    """All settings of one service."""

    model_config = SettingsConfigDict(
        env_prefix="FULLBLOOM_", env_nested_delimiter="__", extra="forbid", validate_default=True
    )

    data: Path = Field(default_factory=state_folder, description="folder of filters, log and registry")
    http: Address = Field("127.0.0.1:8080", description="address of the HTTP port; port 0 picks one")
    resp: Address = Field("127.0.0.1:6380", description="address of the RESP port; none: no such port")
    resp_keys: bool = Field(default=False, description="RESP has KEYS, whose cost grows with the filters")
    resp_flush: bool = Field(default=False, description="RESP has FLUSHDB and FLUSHALL")
    registry: str = Field("", description="SQLAlchemy URL of the registry; empty: SQLite in the data folder")
    redis: SecretStr | None = Field(None, description="URL of the Redis server for filters of backend redis")
    redis_prefix: str = Field("fullbloom:", max_length=64, description="prefix of their names there")
    durability: Literal["always", "everysec", "off"] = "everysec"
    plain: bool = Field(
        default=False, description="keyed filters only on request; BF and CF create those of RedisBloom"
    )
    salvage: bool = Field(default=False, description="start without damaged filters")
    checkpoint_bytes: int = Field(
        256 << 20, gt=0, description="bytes of log after which a checkpoint is written"
    )
    node: str = Field("", description="name of this node among those of one registry; empty: drawn once")
    advertise: str = Field("", description="URL under which other nodes' clients reach this one")
    silence: float = Field(
        30.0,
        gt=0,
        description="seconds without a heartbeat after which a node of the registry may be removed",
    )
    require_token: bool = Field(default=False, description="reject all requests without a token")
    tls_cert: Path | None = Field(None, description="PEM file of the certificate, for both ports")
    tls_key: Path | None = Field(None, description="PEM file of its key")
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    limits: Limits = Field(default_factory=lambda: Limits.model_validate({}))
    history: History = Field(default_factory=lambda: History.model_validate({}))

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Flags come before the environment, that before the file."""
        del dotenv_settings, file_secret_settings
        file = TomlConfigSettingsSource(settings_cls, toml_file=_config_file) if _config_file else None
        return tuple(source for source in (init_settings, env_settings, file) if source is not None)

    @property
    def registry_url(self) -> str:
        """The registry's URL, that of the SQLite file by default."""
        return self.registry or f"sqlite:///{(self.data / 'registry.db').absolute()}"


#: The file of `load` while it reads; pydantic-settings builds its sources in a class method.
_config_file: Path | None = None


def load(config: Path | None = None, **flags: Any) -> Settings:
    """Load the settings; ``StartError`` names everything wrong with them in one line."""
    global _config_file  # noqa: PLW0603 - see there
    if config is not None and not config.is_file():
        raise StartError(f"{config}: no such file")
    _config_file = config
    try:
        settings = Settings(**{name: value for name, value in flags.items() if value is not None})
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise StartError(f"the settings are wrong: {faults}") from None
    except (OSError, ValueError) as error:
        raise StartError(f"{config}: {error}") from None
    finally:
        _config_file = None
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise StartError("TLS needs both files: give --tls-cert and --tls-key, or neither")
    return settings
