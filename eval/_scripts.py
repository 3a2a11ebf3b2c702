"""One sentence a script, asked by one inner word, among ten thousand others."""

from __future__ import annotations

import random
import unicodedata

from muniment import Store

from ._harness import Result

DISTRACTORS = 10_000
_SEED = 45
SENTENCES = {
    "chinese": ("他昨天在图书馆借了三本书", "图书馆"),
    "japanese": ("昨日東京タワーに登りました", "東京"),
    "korean": ("어제 도서관에서 책을 빌렸다", "도서관"),
    "cyrillic": ("Вчера я купил билет в театр", "билет"),
    "greek": ("Χθες αγόρασα ένα βιβλίο", "βιβλίο"),
    "arabic": ("اشتريت كتابا جديدا أمس", "جديدا"),
    "hebrew": ("קניתי ספר חדש אתמול", "ספר"),
    "thai": ("เมื่อวานฉันไปตลาด", "ตลาด"),
    "devanagari": ("कल मैंने एक किताब खरीदी", "किताब"),
    "latin": ("le café de la gare est fermé", "café"),
}
# Other words of the same scripts, from which the distractors are put together.
_WORDS = {
    "chinese": "今天 天气 很好 我们 去 公园 散步 朋友 喜欢 音乐 工作 学校 老师 电影 晚饭",
    "japanese": "今日 天気 良い 公園 散歩 友達 音楽 仕事 学校 先生 映画 夕食 電車 海 山",
    "korean": "오늘 날씨가 좋다 공원에 산책 친구와 음악을 학교 선생님 영화 저녁 기차 바다 산",
    "cyrillic": "сегодня погода хорошая мы идём парк друзья музыка работа школа учитель фильм ужин море гора",
    "greek": "σήμερα καιρός καλός πάμε πάρκο φίλοι μουσική δουλειά σχολείο δάσκαλος ταινία δείπνο θάλασσα βουνό",
    "arabic": "اليوم الطقس جميل نذهب حديقة أصدقاء موسيقى عمل مدرسة معلم فيلم عشاء بحر جبل قطار",
    "hebrew": "היום מזג אוויר יפה הולכים פארק חברים מוזיקה עבודה מורה סרט ארוחה ים הר רכבת",
    "thai": "วันนี้ อากาศ ดี เรา สวน เพื่อน ดนตรี งาน โรงเรียน ครู หนัง ข้าว ทะเล ภูเขา รถไฟ",
    "devanagari": "आज मौसम अच्छा हम बगीचा दोस्त संगीत काम विद्यालय शिक्षक फिल्म भोजन समुद्र पहाड़ रेल",
    "latin": "aujourd'hui le temps est beau nous allons au parc avec des amis la musique travail école film mer",
}


def find_in_every_script(store: Store, *, vectors: bool) -> Result:
    """Return the rank of each sentence, asked by its inner word in both Unicode compositions."""
    session = store.session(scope="eval/scripts", actor="user")
    chance = random.Random(_SEED)
    texts = [sentence for sentence, _ in SENTENCES.values()]
    for number in range(DISTRACTORS):
        script = list(_WORDS)[number % len(_WORDS)]
        joint = "" if script in ("chinese", "japanese", "thai") else " "
        texts.append(joint.join(chance.choices(_WORDS[script].split(), k=6)) + f" {number}")
    chance.shuffle(texts)
    for start in range(0, len(texts), 1_000):
        session.remember_many([{"content": text} for text in texts[start : start + 1_000]])
    rows: list[Result] = []
    for script, (sentence, word) in SENTENCES.items():
        ranks = {}
        for form in ("NFC", "NFD"):
            found = [hit.content for hit in session.recall(unicodedata.normalize(form, word), k=10)]
            ranks[form] = found.index(sentence) + 1 if sentence in found else None
        rows.append({"script": script, **ranks})
    ok = all(row["NFC"] == row["NFD"] == 1 for row in rows)
    found_by = "words and vectors" if vectors else "words only"
    return {"conditions": f"{found_by}, {DISTRACTORS} distractors in ten scripts", "all_at_rank_1": ok, "rows": rows}
